// SPDX-License-Identifier: Apache-2.0
// Another job on the same switches: it occupies and frees aggregators on request.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "support/gradients.h"
#include "support/network.h"

namespace atp::testing {

class Stranger {
  public:
    Stranger(Network& network, protocol::Switch& machine, std::uint8_t level)
        : network_(network), machine_(machine), level_(level) {
        channel_.lanes = network.config().channel.lanes;
        if (!machine.admit(channel_.job, channel_.token, level)) throw std::logic_error("no room for another job");
    }

    // Claims the aggregator: only one of two workers sends its gradient.
    void occupy(std::uint32_t index) {
        atp_header header = gradient_of(channel_, *protocol::Membership::racks(2, 2), 0, 0);
        header.hop = level_;
        if (level_ == 1) header.bitmap0 = header.mask0;
        header.index = index;
        pass(make_packet(header, Lanes(channel_.lanes, 1'000'000)));
    }
    // Frees the aggregator with the ACK of the other job's fragment.
    void leave(std::uint32_t index) {
        atp_header header = gradient_of(channel_, *protocol::Membership::racks(2, 2), 0, 0);
        header.type = ATP_TYPE_ACK;
        header.lanes = ATP_FLOAT32_LANES;
        header.index = index;
        pass(make_packet(header, Lanes(channel_.lanes)));
    }

  private:
    void pass(Bytes bytes) {
        const auto size = static_cast<std::uint32_t>(bytes.size());
        protocol::PacketBuffer packet_buffer{
            .data = bytes.data(), .size = size, .capacity = size, .congested = false, .verdict = {}};
        machine_.handle_packet(packet_buffer, network_.now());
    }

    Network& network_;
    protocol::Switch& machine_;
    std::uint8_t level_;
    protocol::ChannelConfig channel_{.job = 99, .token = 0xbad, .window_log2 = 3};
};

}  // namespace atp::testing
