// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace atp::switchd {

// 0: not known.
struct MemoryOfHost {
    std::uint64_t ram = 0;  // that this process may use: a container may have a limit
    std::uint64_t swap = 0;

    [[nodiscard]] static MemoryOfHost of_this_host();
    [[nodiscard]] std::uint64_t all() const { return ram + swap; }
    // Servers of strangers must not push the host's own work out, such as a trainer that runs a switch.
    [[nodiscard]] std::uint64_t usual_server_bytes() const {
        constexpr std::uint64_t most = std::uint64_t{4} << 30U;
        return ram == 0 ? most : std::min(most, ram / 4);
    }
};

// The lowest limit of the control groups that `groups` names, a file as /proc/self/cgroup, with their files under
// `root`. The highest number: none of them has a limit.
[[nodiscard]] std::uint64_t memory_limit(const std::string& groups, const std::string& root);

}  // namespace atp::switchd
