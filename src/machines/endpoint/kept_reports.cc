// SPDX-License-Identifier: Apache-2.0
#include "endpoint/kept_reports.h"

#include <algorithm>
#include <utility>

namespace atp::endpoint {

bool KeptReports::has_room(Time now) {
    while (reports_.size() > 1 && now - reports_.front().made_at > kept_for) {
        bytes_ -= reports_.front().text.size();
        reports_.pop_front();
    }
    return reports_.size() < 2 || bytes_ + reports_.back().text.size() <= most_bytes;
}

const KeptReports::KeptReport& KeptReports::add(std::string text, Time now) {
    last_ = std::max(last_ + 1, 1U);
    bytes_ += text.size();
    return reports_.emplace_back(KeptReport{.number = last_, .made_at = now, .text = std::move(text)});
}

const KeptReports::KeptReport* KeptReports::find(std::uint32_t number) const {
    const auto found = std::ranges::find(reports_, number, &KeptReport::number);
    return found == reports_.end() ? nullptr : &*found;
}

}  // namespace atp::endpoint
