// SPDX-License-Identifier: Apache-2.0
#include "switchd/mailbox.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/control_messages.h"

namespace atp::switchd {
namespace {

using endpoint::ControlMessage;
using endpoint::ControlQueue;

ControlMessage message_of(std::vector<std::byte> bytes) {
    const std::size_t length = bytes.size();
    return {.bytes = std::move(bytes), .length = length};
}
ControlMessage join() { return message_of(testing::encoded(testing::join_of_worker())); }
ControlMessage leave(std::uint64_t nonce) {
    return message_of(testing::encoded(wire::Leave{.nonce = nonce, .token = 1}));
}

std::vector<ControlMessage> taken(Mailbox& mailbox) {
    std::vector<ControlMessage> messages;
    mailbox.take_all([&](ControlMessage message) { messages.push_back(std::move(message)); });
    return messages;
}

TEST(Mailbox, MessagesAreTakenOnceInTheirOrder) {
    Mailbox mailbox;
    for (std::uint64_t nonce = 0; nonce < 3; ++nonce) EXPECT_TRUE(mailbox.put(leave(nonce)));
    const auto messages = taken(mailbox);
    ASSERT_EQ(messages.size(), 3U);
    for (std::uint64_t nonce = 0; nonce < 3; ++nonce) {
        EXPECT_EQ(wire::decode<wire::Leave>(messages[nonce].bytes)->nonce, nonce);
    }
    EXPECT_TRUE(taken(mailbox).empty());
}

TEST(Mailbox, MessagesFromAnywherePushOutNoJoinWithACookie) {
    Mailbox mailbox;
    while (mailbox.put(leave(1))) {
    }
    EXPECT_EQ(mailbox.lost(), 1U);
    EXPECT_TRUE(mailbox.put(join()));
    EXPECT_EQ(taken(mailbox).size(), ControlQueue::most_messages + 1);
}

TEST(Mailbox, MessagesAreBoundedInBytesToo) {
    Mailbox mailbox;
    std::size_t count = 0;
    while (mailbox.put(message_of(std::vector<std::byte>(3000)))) ++count;
    EXPECT_EQ(count, ControlQueue::most_bytes / 3000);
}

}  // namespace
}  // namespace atp::switchd
