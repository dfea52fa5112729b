// SPDX-License-Identifier: Apache-2.0
// A server of three workers, for fragments that have an owner.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "protocol/delivery.h"
#include "support/server_bench.h"

namespace atp::testing {

class OwnedServer : public ::testing::Test {
  protected:
    ServerBench bench{*protocol::Membership::star(3)};

    [[nodiscard]] atp_header gradient_for(const protocol::Delivery& delivery, std::uint16_t rank) const {
        atp_header gradient = gradient_of(bench.channel, bench.members, rank, 0);
        gradient.peer = delivery.owner;
        gradient.argument = delivery.mark();
        if (delivery.one_sender) gradient.flags = ATP_FLAG_ONE_SENDER | ATP_FLAG_PLAIN | ATP_FLAG_BYPASS;
        return gradient;
    }
    [[nodiscard]] Bytes ready(std::uint16_t rank, std::uint32_t until) const {
        atp_header header = gradient_of(bench.channel, bench.members, rank, 0);
        header.type = ATP_TYPE_READY;
        header.lanes = ATP_DTYPE_NONE;
        header.argument = until;
        return make_packet(header);
    }
};

}  // namespace atp::testing
