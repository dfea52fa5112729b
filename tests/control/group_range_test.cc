// SPDX-License-Identifier: Apache-2.0
// Accepted texts for a range of multicast groups, and the groups of a job's channels.
#include "control/group_range.h"

#include <gtest/gtest.h>

#include "control/join_tree.h"

namespace atp::control {
namespace {

std::string group_text(const Multicast& multicast, std::uint32_t first, std::uint16_t channel) {
    return to_string(address_of(group_of(multicast, first, channel)));
}

TEST(Multicast, ParsedRangePrintsTheSameText) {
    for (const char* const text : {"off", "239.192.0.0/16", "239.0.0.0/8", "224.0.0.0/4", "239.1.2.3/32"}) {
        const auto multicast = parse_multicast(text);
        ASSERT_TRUE(multicast) << text;
        EXPECT_EQ(to_string(*multicast), text);
    }
    EXPECT_EQ(to_string(parse_multicast("on").value()), "239.192.0.0/16");
    EXPECT_EQ(parse_multicast("239.1.2.3"), parse_multicast("239.1.2.3/32"));
    EXPECT_FALSE(parse_multicast("off")->requested);
}

TEST(Multicast, InvalidRangeOfGroupsIsRefused) {
    for (const char* const text :
         {"", "yes", "10.0.0.0/8", "240.0.0.0/8", "224.0.0.0/3", "239.192.0.1/16", "239.192.0.0/33", "239.192.0.0/",
          "239.192.0.0/16x", "239.192/16", "ff18::1", "239.1.2.3:4792"}) {
        EXPECT_FALSE(parse_multicast(text)) << text;
    }
}

TEST(Multicast, ChannelsTakeConsecutiveGroupsOfTheRangeFromTheFirstOfTheJob) {
    const Multicast multicast = parse_multicast("on").value();
    EXPECT_EQ(group_text(multicast, 0xABCD1234, 0), "239.192.18.52:4792");
    EXPECT_EQ(group_text(multicast, 0xABCD1234, 3), "239.192.18.55:4792");
    EXPECT_EQ(group_text(multicast, 0xFFFFFFFF, 0), "239.192.255.255:4792");
    EXPECT_EQ(group_text(multicast, 0xFFFFFFFF, 1), "239.192.0.0:4792");
}

TEST(Multicast, RangeOfOneGroupServesAllChannels) {
    const Multicast multicast = parse_multicast("239.1.2.3").value();
    EXPECT_EQ(group_text(multicast, 1, 3), "239.1.2.3:4792");
    EXPECT_EQ(group_text(multicast, 4, 6), "239.1.2.3:4792");
    EXPECT_EQ(group_of({}, 1, 3).family, 0) << "without a range of groups, a channel has no group";
}

}  // namespace
}  // namespace atp::control
