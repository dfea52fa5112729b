// SPDX-License-Identifier: Apache-2.0
#include "p4agent/job_tables.h"

#include "p4agent/one_pass_tables.h"
#include "p4agent/pass_tables.h"

namespace atp::p4agent {

std::unique_ptr<JobTables> job_tables_of(Bmv2& bmv2) {
    if (bmv2.program().kind == PipelineProgram::Kind::passes) return std::make_unique<PassTables>(bmv2);
    return std::make_unique<OnePassTables>(bmv2);
}

}  // namespace atp::p4agent
