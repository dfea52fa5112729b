// SPDX-License-Identifier: Apache-2.0
#include "control/departures.h"

#include <algorithm>

namespace atp::control {

bool Departures::has_room(const HostKey& host) const {
    if (order_.size() >= most_) return false;
    const auto found = of_host_.find(host);
    return found == of_host_.end() || found->second < most_of_host;
}

void Departures::note(const ChannelKey& channel, std::uint16_t position, const HostKey& host, std::uint64_t nonce,
                      std::uint32_t epoch, Time until) {
    entries_[{channel, position}] = {.host = host, .nonce = nonce, .epoch = epoch, .until = until};
    add({.until = until, .place = {channel, position}, .host = host});
}

void Departures::add(const Expiry& expiry) {
    order_.push_back(expiry);
    ++of_host_[expiry.host];
}

bool Departures::is_old(const ChannelKey& channel, std::uint16_t position, std::uint64_t nonce,
                        std::uint32_t epoch) const {
    const auto found = entries_.find({channel, position});
    return found != entries_.end() && found->second.nonce == nonce && epoch <= found->second.epoch;
}

// An entry may be newer than the expiry that names it, or gone.
Time Departures::forget_expired(Time now) {
    while (!order_.empty() && order_.front().until <= now) {
        const Expiry& expiry = order_.front();
        const auto found = entries_.find(expiry.place);
        if (found != entries_.end() && found->second.until <= now) entries_.erase(found);
        if (const auto count = of_host_.find(expiry.host); --count->second == 0) of_host_.erase(count);
        order_.pop_front();
    }
    return order_.empty() ? never : order_.front().until;
}

void Departures::sort_expiries() {
    order_.clear(), of_host_.clear();
    for (const auto& [place, departed] : entries_) {
        add({.until = departed.until, .place = place, .host = departed.host});
    }
    std::ranges::sort(order_, {}, &Expiry::until);
}

}  // namespace atp::control
