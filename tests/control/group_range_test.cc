// SPDX-License-Identifier: Apache-2.0
// Accepted texts for a range of multicast groups, and the choice of a job's group.
#include "control/group_range.h"

#include <gtest/gtest.h>

#include <set>

#include "control/join_tree.h"

namespace atp::control {
namespace {

std::string group_text(const Multicast& multicast, std::uint32_t job, std::uint32_t token, std::uint16_t channel) {
    return to_string(address_of(group_of(multicast, job, token, channel)));
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

TEST(Multicast, GroupDependsOnJobTokenAndChannelAndIsRarelyShared) {
    const Multicast multicast = parse_multicast("on").value();
    std::set<std::string> groups;
    for (std::uint32_t job = 1; job <= 16; ++job) {
        for (std::uint16_t channel = 0; channel < 4; ++channel) {
            const std::string group = group_text(multicast, job, 0x5EED, channel);
            EXPECT_EQ(group, group_text(multicast, job, 0x5EED, channel));
            EXPECT_TRUE(group.starts_with("239.192.") && group.ends_with(":4792")) << group;
            groups.insert(group);
        }
    }
    EXPECT_GE(groups.size(), 63U);
    EXPECT_NE(group_text(multicast, 1, 0x5EED, 0), group_text(multicast, 1, 0x5EEE, 0))
        << "another token gives another group";
}

TEST(Multicast, RangeOfOneGroupServesAllChannels) {
    const Multicast multicast = parse_multicast("239.1.2.3").value();
    EXPECT_EQ(group_text(multicast, 1, 2, 3), "239.1.2.3:4792");
    EXPECT_EQ(group_text(multicast, 4, 5, 6), "239.1.2.3:4792");
    EXPECT_EQ(group_of({}, 1, 2, 3).family, 0) << "without a range of groups, a channel has no group";
}

}  // namespace
}  // namespace atp::control
