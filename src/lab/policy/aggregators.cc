// SPDX-License-Identifier: Apache-2.0
#include "policy/aggregators.h"

#include "protocol/aggregator_index.h"
#include "protocol/channel.h"

namespace atp::policy {

std::uint32_t Aggregators::index(const protocol::ChannelConfig& channel, std::uint32_t slot,
                                 std::uint32_t attempt) const {
    const std::uint32_t part = std::max(channel.aggregators / assignment_.parts, 1U);
    const std::uint32_t first = channel.job % assignment_.parts * part % channel.aggregators;
    if (assignment_.in_sequence) return first + slot % part;
    const std::uint32_t seed = protocol::index_seed(channel.job, channel.token, channel.channel);
    return first + protocol::aggregator_index(seed, slot, attempt, part);
}

}  // namespace atp::policy
