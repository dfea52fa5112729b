// SPDX-License-Identifier: Apache-2.0
// Flags of `atp bench`, made from the table of options (comm/option_table.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/common/flags.h"
#include "comm/options.h"

namespace atp::apps {

// Adds one flag of the table. The flag sets each of its options from text. Several values are separated by colons. For
// features that are on by default, the value lists those to disable. `options` must outlive the command's parsing.
CLI::Option* add_option_flag(Flags& flags, std::string_view flag, comm::Options& options);
// Adds all flags of the table except `others`.
void add_option_flags(Flags& flags, comm::Options& options, const std::vector<std::string_view>& others);

// The flags and values that turn the defaults into `options`, for the command line of another process.
[[nodiscard]] std::vector<std::string> option_arguments(const comm::Options& options);

}  // namespace atp::apps
