// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "comm/options.h"

namespace atp::comm {

// What people call the job of a rank: the option, or else what ATP_JOB_NAME, torchrun or Slurm say. Empty: nobody named
// it. Switches show it beside the job's number.
[[nodiscard]] std::string job_name_of(const Options& options);

// The beginning of a name, as long as a JOIN has room for, without a part of a character.
[[nodiscard]] std::string_view short_job_name(std::string_view name);

}  // namespace atp::comm
