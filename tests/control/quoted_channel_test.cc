// SPDX-License-Identifier: Apache-2.0
// Which channel a report about a failed packet names.
#include "control/quoted_channel.h"

#include <gtest/gtest.h>

#include <span>

#include "support/control_messages.h"
#include "support/packets.h"
#include "wire/control.h"
#include "wire/packet.h"

namespace atp::control {
namespace {

const wire::Join join = testing::join_of_worker();
const ChannelKey own{join.terms.job, join.terms.token, join.terms.channel};

TEST(QuotedChannel, IsThatOfAPacketAndOfEachJoiningMessage) {
    atp_header header{};
    header.version = ATP_VERSION;
    header.type = ATP_TYPE_ACK;
    header.job = own.job;
    header.token = own.token;
    header.channel = own.channel;
    EXPECT_EQ(quoted_channel(testing::make_packet(header)), own);
    EXPECT_EQ(quoted_channel(testing::encoded(join)), own);
    EXPECT_EQ(quoted_channel(testing::encoded(
                  wire::Joined{.job = own.job, .token = own.token, .channel = own.channel, .ready = true})),
              own);
    EXPECT_EQ(quoted_channel(testing::encoded(wire::Leave{.job = own.job, .token = own.token, .channel = own.channel})),
              own);
}

TEST(QuotedChannel, OtherMessagesAndShortQuotesNameNone) {
    EXPECT_FALSE(quoted_channel({}));
    EXPECT_FALSE(quoted_channel(testing::encoded(wire::Hello{.nonce = 1})));
    const auto bytes = testing::encoded(join);
    EXPECT_FALSE(quoted_channel(std::span(bytes).first(wire::control_prefix_bytes + 21)));
    EXPECT_TRUE(quoted_channel(std::span(bytes).first(wire::control_prefix_bytes + 22)));
    atp_header header{};
    header.type = ATP_TYPE_PROBE;
    const auto packet = testing::make_packet(header);
    EXPECT_FALSE(quoted_channel(std::span(packet).first(ATP_OFFSET_TOKEN + 7)));
    EXPECT_TRUE(quoted_channel(std::span(packet).first(ATP_OFFSET_TOKEN + 8)));
}

}  // namespace
}  // namespace atp::control
