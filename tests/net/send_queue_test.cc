// SPDX-License-Identifier: Apache-2.0
#include "net/send_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace atp::net {
namespace {

constexpr MessageLimits generous{128, 65'000};

wire::Address peer(std::uint16_t port) { return wire::Address::loopback(wire::Family::ipv4, port); }

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

bool put(SendQueue& queue, std::string_view text, const wire::Address& to, wire::Ecn ecn = wire::Ecn::capable_0) {
    const auto room = queue.reserve(text.size());
    if (room.size() != text.size() || room.data() == nullptr) return false;
    std::memcpy(room.data(), text.data(), text.size());
    queue.commit(text.size(), to, ecn);
    return true;
}

// A message's datagrams as a kernel would segment them: "to:aaaa
// aaaa
// a".
std::string describe(const SendQueue::Message& message) {
    std::string bytes;
    for (const iovec& part : message.parts) {
        bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
    }
    EXPECT_EQ(bytes.size(), message.bytes);
    std::string line = std::to_string(message.to->port()) + ":";
    std::size_t packets = 0;
    for (std::size_t at = 0; at < bytes.size() || packets == 0; at += message.packet_bytes) {
        line += (packets++ == 0 ? "" : "|") + bytes.substr(at, message.packet_bytes);
    }
    EXPECT_EQ(packets, message.packets);
    return line;
}

std::vector<std::string> send_all(SendQueue& queue, const MessageLimits& limits, std::size_t messages_at_once = 4) {
    std::vector<std::string> lines;
    std::vector<SendQueue::Message> messages(messages_at_once);
    while (!queue.empty()) {
        const std::size_t count = queue.plan(messages, limits);
        if (count == 0) {
            ADD_FAILURE() << queue.waiting() << " packets wait and none is planned";
            return lines;
        }
        for (std::size_t at = 0; at < count; ++at) {
            lines.push_back(describe(messages[at]));
            queue.sent(messages[at]);
        }
    }
    EXPECT_EQ(queue.settle(), 0U);
    return lines;
}

using Lines = std::vector<std::string>;

TEST(SendQueue, EqualPacketsToOnePeerAreOneMessage) {
    SendQueue queue(1000, 16);
    for (const char* text : {"aaaa", "bbbb", "cccc"}) ASSERT_TRUE(put(queue, text, peer(1)));
    std::array<SendQueue::Message, 4> messages;
    ASSERT_EQ(queue.plan(messages, generous), 1U);
    EXPECT_EQ(messages[0].parts.size(), 1U) << "they were written back to back";
    EXPECT_EQ(send_all(queue, generous), Lines{"1:aaaa|bbbb|cccc"});
}

TEST(SendQueue, ShorterPacketEndsItsMessage) {
    SendQueue queue(1000, 16);
    for (const char* text : {"aaaa", "bbbb", "cc", "dd", "eeee"}) ASSERT_TRUE(put(queue, text, peer(1)));
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:aaaa|bbbb|cc", "1:dd", "1:eeee"}));
}

TEST(SendQueue, PacketsToAlternatingPeersAreGroupedInOrder) {
    SendQueue queue(1000, 16);
    for (const char* text : {"a1", "a2", "a3"}) {
        for (std::uint16_t to = 1; to <= 3; ++to) ASSERT_TRUE(put(queue, text, peer(to)));
    }
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:a1|a2|a3", "2:a1|a2|a3", "3:a1|a2|a3"}));
}

TEST(SendQueue, RepeatSendsTheSameBytesToSeveralPeers) {
    SendQueue queue(4, 16);
    ASSERT_TRUE(put(queue, "ab", peer(1)));
    ASSERT_TRUE(queue.repeat(peer(2)));
    ASSERT_TRUE(put(queue, "cd", peer(1))) << "two packets of two bytes fit four bytes, whomever they go to";
    ASSERT_TRUE(queue.repeat(peer(2)));
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:ab|cd", "2:ab|cd"}));
}

TEST(SendQueue, DifferentMarkEndsItsMessage) {
    SendQueue queue(1000, 16);
    ASSERT_TRUE(put(queue, "aa", peer(1)));
    ASSERT_TRUE(put(queue, "bb", peer(1), wire::Ecn::congested));
    ASSERT_TRUE(put(queue, "cc", peer(1), wire::Ecn::congested));
    std::array<SendQueue::Message, 4> messages;
    ASSERT_EQ(queue.plan(messages, generous), 2U);
    EXPECT_EQ(messages[0].ecn, wire::Ecn::capable_0);
    EXPECT_EQ(messages[1].ecn, wire::Ecn::congested);
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:aa", "1:bb|cc"}));
}

TEST(SendQueue, LimitsOfPacketsAndBytesEndAMessage) {
    SendQueue queue(1000, 16);
    const auto fill = [&queue] {
        for (const char* text : {"aa", "bb", "cc", "dd", "ee"}) ASSERT_TRUE(put(queue, text, peer(1)));
    };
    fill();
    EXPECT_EQ(send_all(queue, {2, 1000}), (Lines{"1:aa|bb", "1:cc|dd", "1:ee"}));
    fill();
    EXPECT_EQ(send_all(queue, {16, 5}), (Lines{"1:aa|bb", "1:cc|dd", "1:ee"}));
    fill();
    EXPECT_EQ(send_all(queue, {1, 1000}), (Lines{"1:aa", "1:bb", "1:cc", "1:dd", "1:ee"}));
    fill();
    EXPECT_EQ(send_all(queue, {16, 1}), (Lines{"1:aa", "1:bb", "1:cc", "1:dd", "1:ee"}))
        << "one packet is included at any limit";
}

TEST(SendQueue, EmptyPacketIsItsOwnMessage) {
    SendQueue queue(1000, 16);
    ASSERT_TRUE(queue.borrow({}, peer(1), wire::Ecn::capable_0));
    ASSERT_TRUE(queue.borrow({}, peer(1), wire::Ecn::capable_0));
    ASSERT_TRUE(put(queue, "a", peer(1)));
    ASSERT_TRUE(queue.borrow({}, peer(1), wire::Ecn::capable_0));
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:", "1:", "1:a", "1:"}));
}

TEST(SendQueue, FullQueueRefusesPacketsUntilOthersAreSent) {
    SendQueue queue(8, 3);
    EXPECT_TRUE(queue.reserve(9).empty());
    ASSERT_TRUE(put(queue, "aaaa", peer(1)));
    EXPECT_TRUE(queue.reserve(5).empty());
    ASSERT_TRUE(put(queue, "bbbb", peer(1)));
    ASSERT_TRUE(queue.repeat(peer(2)));
    EXPECT_FALSE(queue.repeat(peer(3))) << "three packets at most";
    EXPECT_FALSE(queue.borrow(bytes_of("x"), peer(1), wire::Ecn::capable_0));
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:aaaa|bbbb", "2:bbbb"}));
    EXPECT_EQ(queue.reserve(8).size(), 8U);
}

TEST(SendQueue, ReservationWithoutCommitIsForgotten) {
    SendQueue queue(8, 4);
    ASSERT_EQ(queue.reserve(8).size(), 8U);
    ASSERT_TRUE(put(queue, "abcdefgh", peer(1)));
    EXPECT_EQ(queue.waiting(), 1U);
}

TEST(SendQueue, BorrowedPacketThatWaitsIsCopied) {
    SendQueue queue(6, 8);
    std::string first = "first";
    std::string second = "2nd";
    ASSERT_TRUE(queue.borrow(bytes_of(first), peer(1), wire::Ecn::capable_0));
    ASSERT_TRUE(queue.borrow(bytes_of(second), peer(1), wire::Ecn::capable_0));
    ASSERT_TRUE(put(queue, "z", peer(2)));
    EXPECT_EQ(queue.settle(), 1U) << "five of the six bytes are taken for the first, so the second is lost";
    first.assign("XXXXX");
    second.assign("XXX");
    EXPECT_EQ(queue.waiting(), 2U);
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:first", "2:z"}));
}

TEST(SendQueue, LostBorrowedPacketsLeaveTheRestInOrder) {
    SendQueue queue(2, 8);
    for (const char* text : {"aa", "bbb", "", "cc"}) {
        ASSERT_TRUE(queue.borrow(bytes_of(text), peer(1), wire::Ecn::capable_0));
    }
    EXPECT_EQ(queue.settle(), 2U);
    ASSERT_TRUE(queue.borrow(bytes_of("dd"), peer(1), wire::Ecn::capable_0));
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:aa", "1:", "1:dd"}));
}

TEST(SendQueue, NewPacketsQueueBehindWaitingOnes) {
    SendQueue queue(1000, 16);
    for (const char* text : {"a1", "a2", "a3"}) ASSERT_TRUE(put(queue, text, peer(1)));
    ASSERT_TRUE(put(queue, "b1", peer(2)));
    std::array<SendQueue::Message, 1> messages;
    ASSERT_EQ(queue.plan(messages, {2, 1000}), 1U);
    queue.sent(messages[0]);
    EXPECT_EQ(queue.settle(), 0U);
    EXPECT_EQ(queue.waiting(), 2U);
    ASSERT_TRUE(put(queue, "a4", peer(1)));
    ASSERT_TRUE(put(queue, "b2", peer(2)));
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:a3|a4", "2:b1|b2"}));
}

TEST(SendQueue, PeerWithSentPacketsMayQueueBeforeTheRest) {
    SendQueue queue(1000, 16);
    ASSERT_TRUE(put(queue, "a1", peer(1)));
    ASSERT_TRUE(put(queue, "b1", peer(2)));
    std::array<SendQueue::Message, 1> messages;
    ASSERT_EQ(queue.plan(messages, generous), 1U);
    queue.sent(messages[0]);
    ASSERT_EQ(queue.plan(messages, generous), 1U) << "moves the front behind the first peer";
    EXPECT_EQ(queue.settle(), 0U);
    ASSERT_TRUE(put(queue, "a2", peer(1)));
    EXPECT_EQ(send_all(queue, generous), (Lines{"1:a2", "2:b1"}));
}

// Any mix of peers, sizes, marks, and borrowed and own packets, sent in any portions: each peer gets its packets in
// order.
TEST(SendQueue, RandomMixReachesEveryPeerInOrder) {
    std::mt19937 random(7);
    const auto draw = [&random](unsigned below) { return static_cast<unsigned>(random() % below); };
    std::vector<std::string> borrowed(64);
    for (int round = 0; round < 400; ++round) {
        SendQueue queue(2000, 64);
        std::map<std::uint16_t, std::string> expected;
        std::map<std::uint16_t, std::string> got;
        for (unsigned step = 0; step < 60; ++step) {
            const auto to = static_cast<std::uint16_t>(1 + draw(5));
            const wire::Ecn ecn = draw(8) == 0 ? wire::Ecn::congested : wire::Ecn::capable_0;
            std::string text(1 + draw(3), static_cast<char>('a' + step % 26));
            bool accepted = false;
            if (draw(3) == 0) {
                borrowed[step] = text;
                accepted = queue.borrow(bytes_of(borrowed[step]), peer(to), ecn);
            } else {
                accepted = put(queue, text, peer(to), ecn);
            }
            if (accepted) expected[to] += text + ".";
            if (draw(10) != 0) continue;
            std::array<SendQueue::Message, 3> messages;
            const std::size_t planned = queue.plan(messages, {1 + draw(6), 1 + draw(12)});
            for (std::size_t at = 0; at < planned && draw(4) != 0; ++at) {
                std::string line = describe(messages[at]).substr(2) + ".";
                for (char& c : line) c = c == '|' ? '.' : c;
                got[messages[at].to->port()] += line;
                queue.sent(messages[at]);
            }
            ASSERT_EQ(queue.settle(), 0U);
        }
        for (std::string line : send_all(queue, {4, 1000}, 2)) {
            const auto to = static_cast<std::uint16_t>(line[0] - '0');
            for (char& c : line) c = c == '|' ? '.' : c;
            got[to] += line.substr(2) + ".";
        }
        ASSERT_EQ(got, expected) << "round " << round;
    }
}

}  // namespace
}  // namespace atp::net
