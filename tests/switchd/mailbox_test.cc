// SPDX-License-Identifier: Apache-2.0
#include "switchd/mailbox.h"

#include <gtest/gtest.h>

namespace atp::switchd {
namespace {

TEST(Mailbox, MessagesAreTakenOnceInTheirOrder) {
    Mailbox mailbox;
    EXPECT_TRUE(mailbox.put({.from = {}, .bytes = {std::byte{1}}}));
    EXPECT_TRUE(mailbox.put({.from = {}, .bytes = {std::byte{2}}}));
    const auto messages = mailbox.take_all();
    ASSERT_EQ(messages.size(), 2U);
    EXPECT_EQ(messages[0].bytes[0], std::byte{1});
    EXPECT_EQ(messages[1].bytes[0], std::byte{2});
    EXPECT_TRUE(mailbox.take_all().empty());
}

TEST(Mailbox, MessageBeyondTheBoundIsDroppedAndCounted) {
    Mailbox mailbox;
    for (std::size_t i = 0; i < Mailbox::most_messages; ++i) ASSERT_TRUE(mailbox.put({}));
    EXPECT_FALSE(mailbox.put({}));
    EXPECT_EQ(mailbox.lost(), 1U);
    EXPECT_EQ(mailbox.take_all().size(), Mailbox::most_messages);
    EXPECT_TRUE(mailbox.put({})) << "there is room again";
}

}  // namespace
}  // namespace atp::switchd
