// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_counters.h"

#include "comm/communicator.h"
#include "net/clock.h"

namespace atp::comm {
namespace {

// Ethernet, IPv4 and UDP, without the checksum that network cards remove.
constexpr std::uint64_t header_bytes = 14 + 20 + 8;

void add_datagrams(const net::UdpCounters& socket, RankCounters& sum) {
    sum.sent_datagrams += socket.sent_packets;
    sum.sent_bytes += socket.sent_bytes + socket.sent_packets * header_bytes;
    sum.received_datagrams += socket.received_packets;
    sum.received_bytes += socket.received_bytes + socket.received_packets * header_bytes;
}

std::uint64_t microseconds(Duration time) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

}  // namespace

RankCounters Communicator::rank_counters() const {
    const OperationTimes::Sums times = times_->sums(net::now());
    RankCounters sum{.operations = times.operations,
                     .in_flight_us = microseconds(times.in_flight),
                     .waiting_us = microseconds(times.waiting),
                     .copied_bytes = host_ == nullptr ? 0 : host_->copied_bytes()};
    for (const ChannelCounters& channel : counters()) {
        add_datagrams(channel.udp, sum);
        add_datagrams(channel.group_udp, sum);
        sum.fragments += channel.worker.sent;
        sum.resent += channel.worker.resent;
        sum.float_fragments += channel.worker.float_fragments;
    }
    for (const auto& node : nodes_) {
        for (const client::ShardReport& shard : node->snapshot().shards) add_datagrams(shard.udp, sum);
    }
    return sum;
}

}  // namespace atp::comm
