// SPDX-License-Identifier: Apache-2.0
#include "net/affinity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

namespace atp::net {

Result<std::vector<unsigned>> allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return fail_with_errno(Operation::pin, errno);
    std::vector<unsigned> cores;
    for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
    return cores;
}

Result<void> pin_this_thread(unsigned core) {
    const auto allowed = allowed_cores();
    if (!allowed) return Failure(allowed.error());
    if (!std::ranges::binary_search(*allowed, core)) {
        return fail(Operation::pin, Reason::malformed, fmt::format("core {}", core),
                    // errors.md, calls, malformed: `cores` of the options, or the affinity of the process
                    fmt::format("this thread may run only on cores {}: choose one of them, or widen the affinity",
                                fmt::join(*allowed, ", ")));
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        return fail_with_errno(Operation::pin, errno, fmt::format("core {}", core));
    }
    return {};
}

}  // namespace atp::net
