// SPDX-License-Identifier: Apache-2.0
#include "doctor/train.h"

#include <algorithm>

namespace atp::doctor {

void Train::handle_sent() {
    ++report_.sent;
    answered_.push_back(false);
}

void Train::handle_answer(std::uint64_t number, wire::Ecn ecn) {
    if (number >= answered_.size()) return;
    if (answered_[number]) {
        ++report_.repeated;
        return;
    }
    answered_[number] = true;
    ++report_.answered;
    ++report_.marks[static_cast<std::size_t>(ecn)];
    const auto later = answered_.begin() + static_cast<std::ptrdiff_t>(number) + 1;
    const auto newer = static_cast<std::uint32_t>(std::count(later, answered_.end(), true));
    if (newer == 0) return;
    ++report_.overtaken;
    report_.most_newer = std::max(report_.most_newer, newer);
}

}  // namespace atp::doctor
