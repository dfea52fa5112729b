// SPDX-License-Identifier: Apache-2.0
// Another job on the same switches: it occupies and frees aggregators on request.
#pragma once

#include <cstdint>

#include "support/gradients.h"
#include "support/network.h"

namespace atp::testing {

class Stranger {
  public:
    Stranger(Network& network, Node at) : network_(network), at_(at) {
        channel_.lanes = network.config().channel.lanes;
        sender_ = network.admit(channel_, at);
    }

    // Claims the aggregator: only one of two workers sends its gradient.
    void occupy(std::uint32_t index) {
        atp_header header = gradient_of(channel_, *protocol::Membership::racks(2, 2), 0, 0);
        header.hop = at_ == root_node ? 1 : 0;
        if (at_ == root_node) header.bitmap0 = header.mask0;
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
    void pass(const Bytes& bytes) { network_.hand_over(at_, sender_, bytes); }

    Network& network_;
    Node at_;
    Node sender_{};
    protocol::ChannelConfig channel_{.job = 99, .token = 0xbad, .window_log2 = 3};
};

}  // namespace atp::testing
