// SPDX-License-Identifier: Apache-2.0
#include "policy/aggregators.h"

#include "protocol/aggregator_index.h"
#include "protocol/channel.h"

namespace atp::policy {

std::uint32_t Aggregators::index(const protocol::ChannelConfig& channel, std::uint32_t slot,
                                 std::uint32_t attempt) const {
    const auto part = parts_.find(channel.job);
    const std::uint32_t first = part == parts_.end() ? 0 : part->second;
    if (in_sequence_) return first + slot % channel.aggregators;
    const std::uint32_t seed = protocol::index_seed(channel.job, channel.token, channel.channel);
    return first + protocol::aggregator_index(seed, slot, attempt, channel.aggregators);
}

}  // namespace atp::policy
