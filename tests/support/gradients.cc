// SPDX-License-Identifier: Apache-2.0
#include "support/gradients.h"

namespace atp::testing {

atp_header gradient_of(const protocol::ChannelConfig& channel, const protocol::Membership& membership,
                       std::uint16_t rank, std::uint32_t seq) {
    const protocol::Place& place = membership.place(rank);
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_GRADIENT;
    header.flags = channel.audit ? ATP_FLAG_AUDIT : 0;
    header.hop = place.hop;
    header.lanes = ATP_INT32_LANES;
    header.window_log2 = channel.window_log2;
    header.job = channel.job;
    header.token = channel.token;
    header.channel = channel.channel;
    header.worker = rank;
    header.seq = seq;
    header.index = channel.index(seq, 0);
    header.peer = ATP_WORKER_ALL;
    header.bitmap0 = 1U << place.member;
    header.mask0 = place.mask0;
    header.bitmap1 = 1U << place.unit;
    header.mask1 = place.mask1;
    return header;
}

atp_header gradient_of_members(const protocol::ChannelConfig& channel, const protocol::Membership& membership,
                               unsigned unit, std::uint32_t members, std::uint32_t seq) {
    atp_header header = gradient_of(channel, membership, membership.rank_of(unit, 0), seq);
    header.hop = 1;
    header.bitmap0 = members;
    return header;
}

atp_header gradient_of_units(const protocol::ChannelConfig& channel, const protocol::Membership& membership,
                             std::uint32_t units, std::uint32_t seq) {
    atp_header header = gradient_of(channel, membership, 0, seq);
    header.hop = 2;
    header.flags |= ATP_FLAG_WHOLE;
    header.bitmap1 = units;
    return header;
}

}  // namespace atp::testing
