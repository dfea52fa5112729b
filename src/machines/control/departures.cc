// SPDX-License-Identifier: Apache-2.0
#include "control/departures.h"

#include <algorithm>

namespace atp::control {

void Departures::note(const ChannelKey& channel, std::uint16_t position, std::uint64_t nonce, std::uint32_t epoch,
                      Time until) {
    if (entries_.size() >= most_entries && !entries_.contains({channel, position})) return;
    entries_[{channel, position}] = {.nonce = nonce, .epoch = epoch, .until = until};
}

bool Departures::is_old(const ChannelKey& channel, std::uint16_t position, std::uint64_t nonce,
                        std::uint32_t epoch) const {
    const auto found = entries_.find({channel, position});
    return found != entries_.end() && found->second.nonce == nonce && epoch <= found->second.epoch;
}

Time Departures::forget_expired(Time now) {
    std::erase_if(entries_, [now](const auto& entry) { return entry.second.until <= now; });
    Time next = never;
    for (const auto& [at, departed] : entries_) next = std::min(next, departed.until);
    return next;
}

}  // namespace atp::control
