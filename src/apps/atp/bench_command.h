// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/atp/bench_rank.h"
#include "apps/common/command.h"
#include "switchd/config.h"

namespace atp::apps {

// Calls by which another program extends the command. All calls are optional.
struct BenchAdditions {
    std::function<void(Command& command)> add_flags{};
    std::function<void(BenchRank& bench)> complete{};            // after the flags were read
    std::function<std::vector<std::string>()> flags_of_ranks{};  // the same flags, for the ranks that are started
    // Starts the switch for the ranks on this host, instead of this command, and returns its address; empty: it starts
    // none.
    std::function<Result<std::string>(const switchd::SwitchNodeConfig&)> start_switch{};
};

// Adds the command `bench`, which measures a collective on this host or on many, and also Gloo if requested.
[[nodiscard]] std::function<int()> add_bench(CLI::App& program, BenchAdditions additions = {});
[[nodiscard]] std::function<int()> register_bench(CLI::App& program);

}  // namespace atp::apps
