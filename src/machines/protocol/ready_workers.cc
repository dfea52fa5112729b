// SPDX-License-Identifier: Apache-2.0
#include "protocol/ready_workers.h"

#include <algorithm>

namespace atp::protocol {

std::uint32_t ReadyWorkers::note(std::uint16_t worker, std::uint32_t until) {
    const std::uint32_t mark = until_[worker];
    if (!before(mark, until)) return mark;
    until_[worker] = until;
    if (mark == all_until_) find_lowest();
    return mark;
}

bool ReadyWorkers::any_takes(std::uint32_t seq) const {
    return std::ranges::any_of(until_, [seq](std::uint32_t until) { return before(seq, until); });
}

void ReadyWorkers::advance(std::uint32_t base) {
    for (std::uint32_t& mark : until_) {
        if (before(mark, base)) mark = base;
    }
    find_lowest();
}

void ReadyWorkers::find_lowest() {
    all_until_ = until_.front();
    for (const std::uint32_t mark : until_) {
        if (before(mark, all_until_)) all_until_ = mark;
    }
}

}  // namespace atp::protocol
