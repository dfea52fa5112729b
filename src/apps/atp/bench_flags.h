// SPDX-License-Identifier: Apache-2.0
// Flags of `atp bench`.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "apps/atp/bench_command.h"
#include "apps/atp/bench_rank.h"
#include "apps/common/command.h"
#include "base/time.h"

namespace atp::apps {

inline constexpr std::array<std::string_view, 4> gloo_algorithms{"ring", "ring_chunked", "halving_doubling", "bcube"};

struct BenchOptions {
    BenchRank bench;
    bool single = false;  // this process is one rank
    std::uint32_t workers = 4;
    bool network = false;
    std::string packet_flag;  // the first given one that only packets obey
    std::uint32_t hosts = 0;  // 0: all workers are on one host
    std::uint32_t ranks_per_host = 1;
    std::uint32_t repeats = 0;  // 0: 5 if Gloo runs too, else 1
    std::uint64_t memory = 64'000'000;
    std::string peer;
    std::string peer_algorithm = "best";
    bool json = false;
    bool store_elsewhere = false;
    bool ladder = false;
    std::uint32_t switch_threads = 1;
    Duration timeout = std::chrono::minutes(10);
    BenchAdditions additions;

    // False: all ranks are on this host and share its memory.
    [[nodiscard]] bool sends_packets() const { return !bench.options.host_level || hosts != 0; }
};

// The options outlive the command's parsing.
void add_bench_flags(Command& command, const std::shared_ptr<BenchOptions>& options);

}  // namespace atp::apps
