// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/common/command.h"
#include "comm/options.h"
#include "switchd/config.h"

namespace atp::apps {

// Calls by which another program extends the command. All calls are optional.
struct BenchAdditions {
    std::function<void(CLI::App& command)> add_flags{};
    std::function<void(comm::Options& options)> complete{};        // after the flags were read
    std::function<std::vector<std::string>()> flags_of_ranks{};    // the same flags, for the ranks that are started
    std::function<void(switchd::SwitchNodeConfig&)> set_switch{};  // of the switch that is started
};

// Adds the command `bench`, which measures a collective on this host or on many, and also Gloo if requested.
[[nodiscard]] std::function<int()> add_bench(CLI::App& program, BenchAdditions additions = {});
[[nodiscard]] std::function<int()> register_bench(CLI::App& program);

}  // namespace atp::apps
