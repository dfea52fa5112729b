// SPDX-License-Identifier: Apache-2.0
// Flags of `atp bench` that the table of options makes (comm/option_table.h).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/flags.h"
#include "comm/options.h"

namespace atp::apps {

// Adds one flag of the table. It sets every option of that flag, as text: several values have a colon between them;
// features that are on by default are listed to disable them. `options` must outlive the command's parsing.
CLI::Option* add_option_flag(Flags& flags, std::string_view flag, comm::Options& options);
// Adds all flags of the table but those of `others`.
void add_option_flags(Flags& flags, comm::Options& options, const std::vector<std::string_view>& others);

// The flags and values that make `options` from the defaults: the part of a command line that passes them on.
[[nodiscard]] std::vector<std::string> option_arguments(const comm::Options& options);

}  // namespace atp::apps
