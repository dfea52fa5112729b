// SPDX-License-Identifier: Apache-2.0
#include "switchd/memory_of_host.h"

#include <sys/sysinfo.h>

#include <fstream>
#include <limits>

namespace atp::switchd {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// The limit in the file; without one, the file says "max" or does not exist.
std::uint64_t limit_in(const std::string& path) {
    std::ifstream file(path);
    std::uint64_t limit = 0;
    return file >> limit ? limit : no_limit;
}

}  // namespace

// A line is "number:controllers:group". Version 2 of control groups has no controllers there.
std::uint64_t memory_limit(const std::string& groups, const std::string& root) {
    std::ifstream file(groups);
    std::uint64_t lowest = no_limit;
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        if (!controllers.empty() && controllers != "memory") continue;
        const std::string folder = root + (controllers.empty() ? "" : "/memory");
        const char* const name = controllers.empty() ? "/memory.max" : "/memory.limit_in_bytes";
        // The groups around it have limits, too. In a container the group may be outside what `root` shows.
        std::string group = line.substr(second + 1);
        for (bool is_root = false; !is_root; group.resize(is_root ? 0 : group.rfind('/'))) {
            is_root = group.find('/') == std::string::npos;
            lowest = std::min(lowest, limit_in(folder + group + name));
        }
    }
    return lowest;
}

MemoryOfHost MemoryOfHost::of_this_host() {
    struct sysinfo host {};
    if (sysinfo(&host) != 0) return {};
    const std::uint64_t ram = std::uint64_t{host.totalram} * host.mem_unit;
    const std::uint64_t limit = memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    if (limit < ram) return {.ram = limit};  // its group may use no swap
    return {.ram = ram, .swap = std::uint64_t{host.totalswap} * host.mem_unit};
}

}  // namespace atp::switchd
