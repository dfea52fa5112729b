// SPDX-License-Identifier: Apache-2.0
#include "switchd/memory_of_host.h"

#include <sys/sysinfo.h>

namespace atp::switchd {

MemoryOfHost MemoryOfHost::of_this_host() {
    struct sysinfo host {};
    if (sysinfo(&host) != 0) return {};
    return {.ram = std::uint64_t{host.totalram} * host.mem_unit, .swap = std::uint64_t{host.totalswap} * host.mem_unit};
}

}  // namespace atp::switchd
