// SPDX-License-Identifier: Apache-2.0
#include "control/departures.h"

#include <algorithm>

namespace atp::control {

void Departures::note(const ChannelKey& channel, std::uint16_t position, std::uint64_t nonce, std::uint32_t epoch,
                      Time until) {
    entries_[{channel, position}] = {.nonce = nonce, .epoch = epoch, .until = until};
    order_.push_back({.until = until, .place = {channel, position}});
}

bool Departures::is_old(const ChannelKey& channel, std::uint16_t position, std::uint64_t nonce,
                        std::uint32_t epoch) const {
    const auto found = entries_.find({channel, position});
    return found != entries_.end() && found->second.nonce == nonce && epoch <= found->second.epoch;
}

// An entry may be newer than the expiry that names it, or gone.
Time Departures::forget_expired(Time now) {
    while (!order_.empty() && order_.front().until <= now) {
        const auto found = entries_.find(order_.front().place);
        if (found != entries_.end() && found->second.until <= now) entries_.erase(found);
        order_.pop_front();
    }
    return order_.empty() ? never : order_.front().until;
}

void Departures::sort_expiries() {
    order_.clear();
    for (const auto& [place, departed] : entries_) order_.push_back({.until = departed.until, .place = place});
    std::ranges::sort(order_, {}, &Expiry::until);
}

}  // namespace atp::control
