// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "control/data_plane.h"
#include "p4agent/bmv2.h"

namespace atp::p4agent {

// The tables in which a program finds its jobs.
//
// Ownership: uses the switch, which must live longer. The switch keeps its entries when the object is destroyed.
// Calling order: clear() first. The other calls but admit() are about a job that is admitted.
// Threads: one.
// Failure: an entry that the switch rejects is missing, and its packets pass unaggregated.
class JobTables {
  public:
    JobTables() = default;
    virtual ~JobTables() = default;
    JobTables(const JobTables&) = delete;
    JobTables& operator=(const JobTables&) = delete;

    // Removes all jobs of an earlier agent.
    virtual void clear() = 0;
    // `slot`: of the job's counters. False: the switch rejects the job.
    [[nodiscard]] virtual bool admit(const control::AdmittedJob& job, std::uint16_t slot) = 0;
    virtual void dismiss(const control::JobKey& job) = 0;
    virtual void learn_place(const control::JobKey& job, const control::AdmittedPlace& place) = 0;
    virtual void learn_group(const control::ChannelKey& channel, std::uint64_t group_number) = 0;
    virtual void set_level(const control::JobKey& job, std::uint8_t level) = 0;
};

// For the program of the switch.
[[nodiscard]] std::unique_ptr<JobTables> job_tables_of(Bmv2& bmv2);

}  // namespace atp::p4agent
