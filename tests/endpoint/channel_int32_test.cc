// SPDX-License-Identifier: Apache-2.0
// A channel whose JOINED says that narrow integers are sent as int32 (docs/spec/numbers.md#int32-paths).
#include <gtest/gtest.h>

#include "channel_fixture.h"
#include "support/narrow_tensor.h"

namespace atp::endpoint {
namespace {

// The `lanes` of the first gradient of an int16 tensor, after these JOINEDs.
std::uint8_t lanes_after(const std::vector<bool>& int32_lanes) {
    Channel channel(config_of(two_racks(), 1));
    channel.pass(milliseconds(0));
    for (const bool each : int32_lanes) {
        wire::Joined message = joined(channel.config, true);
        message.int32_lanes = each;
        channel.control(message);
    }
    EXPECT_EQ(channel.events.front().kind, Kind::ready);
    EXPECT_EQ(channel.events.front().int32_lanes, int32_lanes.front()) << "for the log";
    channel.out.packets.clear();
    testing::NarrowTensor tensor(ATP_DTYPE_INT16, {1, 2, 3});
    EXPECT_TRUE(channel.machine.submit(tensor, channel.now, never));
    channel.drain();
    return wire::load_u8(channel.out.packets.back().bytes.data() + ATP_OFFSET_LANES);
}

TEST(ChannelMachine, JoinedDecidesTheFormOfNarrowIntegers) {
    EXPECT_EQ(lanes_after({false}), ATP_INT16_LANES);
    EXPECT_EQ(lanes_after({true}), ATP_INT32_LANES);
}

// docs/spec/hazards.md#h81
TEST(ChannelMachine, H81_OnlyTheFirstJoinedWithReadyDecides) {
    EXPECT_EQ(lanes_after({false, true}), ATP_INT16_LANES);
    EXPECT_EQ(lanes_after({true, false}), ATP_INT32_LANES);
}

TEST(ChannelMachine, H81_HostedServerDecidesAtTheFirstJoinOfTheLastSwitch) {
    for (const bool first : {false, true}) {
        Channel channel(hosting());
        channel.become_ready();
        for (const bool path : {first, !first}) {
            wire::Join join = join_of_last_switch(channel.config);
            join.int32_path = path;
            channel.control(join);
            const auto answer = wire::decode<wire::Joined>(channel.out.packets.back().bytes);
            ASSERT_TRUE(answer && answer->ready);
            EXPECT_EQ(answer->int32_lanes, first);
        }
    }
}

}  // namespace
}  // namespace atp::endpoint
