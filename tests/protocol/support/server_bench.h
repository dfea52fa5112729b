// SPDX-License-Identifier: Apache-2.0
// One server without a network: the test supplies packets and reads the answers as a list.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "protocol/server.h"
#include "support/gradients.h"
#include "support/packets.h"

namespace atp::testing {

struct ServerAnswer {
    atp_header header{};
    std::vector<float> sums;  // lanes as float32
    Lanes integers;           // the same lanes as int32
    protocol::ServerTransmit transmit;
};

// The server of a channel with scale 1. Values are small integers, so sums need no conversion.
class ServerBench {
  public:
    explicit ServerBench(protocol::Membership membership, protocol::ChannelConfig channel_config = default_channel(),
                         MemoryBudget* memory = nullptr)
        : channel(channel_config),
          members(std::move(membership)),
          server({.channel = channel_config,
                  .scale = 1,
                  .repeat_interval = std::chrono::milliseconds(1),
                  .memory = memory},
                 members) {}
    ServerBench(const ServerBench&) = delete;  // the server borrows the membership
    ServerBench& operator=(const ServerBench&) = delete;

    [[nodiscard]] static protocol::ChannelConfig default_channel() {
        return {.job = 1, .token = 0x5eed, .channel = 2, .lanes = 2, .window_log2 = 2, .aggregators = 1024};
    }

    void handle(Bytes bytes, bool congested = false) { server.handle_packet(bytes, congested, now); }

    // The gradient of worker `rank`: its lanes are value and -value.
    [[nodiscard]] Bytes gradient(std::uint16_t rank, std::uint32_t seq, std::int32_t value, unsigned flags = 0) const {
        return with_flags(gradient_of(channel, members, rank, seq), value, flags);
    }
    [[nodiscard]] Bytes members_gradient(unsigned unit, std::uint32_t set, std::uint32_t seq, std::int32_t value,
                                         unsigned flags = 0) const {
        return with_flags(gradient_of_members(channel, members, unit, set, seq), value, flags);
    }
    [[nodiscard]] Bytes units_gradient(std::uint32_t units, std::uint32_t seq, std::int32_t value,
                                       unsigned flags = 0) const {
        return with_flags(gradient_of_units(channel, members, units, seq), value, flags);
    }
    [[nodiscard]] Bytes floats(std::uint16_t rank, std::uint32_t seq, float value) const {
        atp_header header = gradient_of(channel, members, rank, seq);
        header.lanes = ATP_FLOAT32_LANES;
        header.flags |= ATP_FLAG_BYPASS;
        return make_float_packet(header, std::vector<float>(channel.lanes, value));
    }
    [[nodiscard]] Bytes probe(std::uint16_t rank, std::uint32_t seq) const {
        atp_header header = gradient_of(channel, members, rank, seq);
        header.type = ATP_TYPE_PROBE;
        header.lanes = ATP_DTYPE_NONE;
        header.flags = 0;
        return make_packet(header);
    }

    // Every answer that the server has to send now.
    std::vector<ServerAnswer> answers() {
        std::vector<ServerAnswer> list;
        Bytes buffer(server.packet_bytes());
        while (const auto sent = server.poll_transmit(buffer)) {
            const Bytes bytes(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(sent->size));
            list.push_back(
                {.header = header_in(bytes), .sums = floats_in(bytes), .integers = lanes_in(bytes), .transmit = *sent});
        }
        return list;
    }
    // Completes seq with value 1 from every worker, and discards the ACK.
    void complete(std::uint32_t seq, unsigned flags = 0) {
        for (std::uint16_t rank = 0; rank < members.workers(); ++rank) handle(gradient(rank, seq, 1, flags));
        (void)answers();
    }

    protocol::ChannelConfig channel;
    protocol::Membership members;
    protocol::Server server;
    Time now{std::chrono::seconds(1)};

  private:
    [[nodiscard]] Bytes with_flags(atp_header header, std::int32_t value, unsigned flags) const {
        header.flags = static_cast<std::uint16_t>(header.flags | flags);
        Lanes lanes(channel.lanes, value);
        for (std::size_t lane = 1; lane < lanes.size(); lane += 2) lanes[lane] = -value;
        return make_packet(header, lanes);
    }
};

}  // namespace atp::testing
