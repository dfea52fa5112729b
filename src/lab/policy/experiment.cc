// SPDX-License-Identifier: Apache-2.0
#include "policy/experiment.h"

#include "protocol/channel.h"
#include "protocol/sequence.h"

namespace atp::policy {

std::uint32_t Experiment::index(const protocol::ChannelConfig& channel, std::uint32_t slot,
                                std::uint32_t attempt) const {
    const std::uint32_t place =
        config_.linear ? slot % channel.aggregators
                       : protocol::aggregator_index(channel.job, channel.channel, slot, attempt, channel.aggregators);
    return config_.first_aggregator + place;
}

}  // namespace atp::policy
