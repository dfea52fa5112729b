// SPDX-License-Identifier: Apache-2.0
#include "control/announcement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atp::control {
namespace {

using ::testing::HasSubstr;

Announcement announcement_of_rank() {
    return {.path = {{.id = 0xFFFF'FFFF'FFFF'FFFFU, .aggregators = 4096, .lanes = 352}, {.id = 1}},
            .lanes = 350,
            .terms = "scale=1e8 window=256",
            .rack = "r\"1",
            .servers = {"10.0.0.1:1", ""}};
}

TEST(Announcement, TextReturnsEveryField) {
    const Announcement sent = announcement_of_rank();
    const auto received = announcement_from(to_text(sent), 3);
    ASSERT_TRUE(received) << to_string(received.error());
    EXPECT_EQ(received->path, sent.path);
    EXPECT_EQ(received->lanes, sent.lanes);
    EXPECT_EQ(received->terms, sent.terms);
    EXPECT_EQ(received->rack, sent.rack);
    EXPECT_EQ(received->servers, sent.servers);
}

TEST(Announcement, MissingFieldGivesAnErrorThatNamesTheRank) {
    for (const char* text : {"", "{}", "[]", "{\"lanes\":1}", "{\"lanes\":\"x\",\"terms\":\"\",\"rack\":\"\"}"}) {
        const auto received = announcement_from(text, 3);
        ASSERT_FALSE(received) << text;
        EXPECT_EQ(received.error().peer, "rank 3");
        EXPECT_EQ(received.error().reason, Reason::mismatched);
        EXPECT_THAT(received.error().text, HasSubstr("same version"));
    }
}

TEST(Announcement, EmptyPathIsRefused) {
    Announcement lost = announcement_of_rank();
    lost.path.clear();
    const auto received = announcement_from(to_text(lost), 0);
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().peer, "rank 0");
}

TEST(Decision, TextReturnsJobAndToken) {
    const auto received = decision_from(to_text(Decision{.job = 0xFFFF'FFFFU, .token = 0x8000'0001U}));
    ASSERT_TRUE(received) << to_string(received.error());
    EXPECT_EQ(received->job, 0xFFFF'FFFFU);
    EXPECT_EQ(received->token, 0x8000'0001U);
}

TEST(Decision, UnreadableTextGivesAnErrorThatNamesRank0) {
    for (const char* text : {"", "{}", "{\"job\":1}", "{\"job\":1,\"token\":\"x\"}"}) {
        const auto received = decision_from(text);
        ASSERT_FALSE(received) << text;
        EXPECT_EQ(received.error().peer, "rank 0");
    }
}

}  // namespace
}  // namespace atp::control
