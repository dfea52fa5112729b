// SPDX-License-Identifier: Apache-2.0
#include "observe/trace_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "wire/control.h"

namespace atp::observe {
namespace {

using Bytes = std::vector<std::byte>;

const wire::Address far_end = *wire::Address::parse("10.0.0.1:4791");

// A datagram of this length that carries a number.
Bytes numbered(std::uint32_t number, std::size_t bytes = 64) {
    Bytes datagram(bytes);
    std::memcpy(datagram.data(), &number, sizeof number);
    return datagram;
}
std::uint32_t number_of(const TraceQueue::Event& event) {
    std::uint32_t number = 0;
    std::memcpy(&number, event.copied.data(), sizeof number);
    return number;
}

TEST(TraceQueue, EventComesOutAsItWentIn) {
    TraceQueue queue("local", 4096);
    const Time now{std::chrono::seconds(5)};
    queue.packet(now, "sent", numbered(17, 1456), &far_end, false);
    queue.packet(now, "completed", numbered(18), nullptr, false);
    TraceQueue::Event event;
    ASSERT_TRUE(queue.take(event));
    EXPECT_EQ(event.time, now);
    EXPECT_EQ(event.what, "sent");
    EXPECT_EQ(event.peer, far_end);
    EXPECT_FALSE(event.arrived);
    EXPECT_EQ(event.datagram_bytes, 1456U);
    EXPECT_EQ(event.copied.size(), std::size_t{ATP_HEADER_BYTES}) << "lanes are not copied";
    EXPECT_EQ(number_of(event), 17U);
    ASSERT_TRUE(queue.take(event));
    EXPECT_EQ(event.peer.family(), wire::Family::none);
    EXPECT_EQ(number_of(event), 18U);
    EXPECT_FALSE(queue.take(event));
}

TEST(TraceQueue, ControlMessageIsCopiedAsAWhole) {
    TraceQueue queue("local", 8192);
    std::array<std::byte, 2048> bytes{};
    const std::size_t size = wire::encode(wire::Hello{.nonce = 5}, bytes, 1400);
    queue.packet({}, "sent", std::span(bytes).first(size), &far_end, false);
    TraceQueue::Event event;
    ASSERT_TRUE(queue.take(event));
    EXPECT_EQ(event.copied.size(), 1400U);
}

TEST(TraceQueue, FullQueueDropsAndCountsAndGoesOnAfterwards) {
    TraceQueue queue("local", 1024);
    for (std::uint32_t number = 0; number < 100; ++number) queue.packet({}, "sent", numbered(number), &far_end, false);
    const std::uint64_t dropped = queue.dropped();
    EXPECT_GT(dropped, 80U);
    TraceQueue::Event event;
    std::uint32_t taken = 0;
    while (queue.take(event)) EXPECT_EQ(number_of(event), taken++);
    EXPECT_EQ(taken + dropped, 100U);
    queue.packet({}, "sent", numbered(200), &far_end, false);
    ASSERT_TRUE(queue.take(event));
    EXPECT_EQ(number_of(event), 200U);
}

TEST(TraceQueue, EventLongerThanTheQueueIsDropped) {
    TraceQueue queue("local", 1024);
    std::vector<std::byte> bytes(8192);
    const std::size_t size = wire::encode(wire::Hello{.nonce = 5}, bytes, 4000);
    queue.packet({}, "sent", std::span(bytes).first(size), &far_end, false);
    EXPECT_EQ(queue.dropped(), 1U);
}

TEST(TraceQueue, TwoThreadsLoseNoEventThatIsNotCounted) {
    TraceQueue queue("local", 4096);
    constexpr std::uint32_t sent = 200'000;
    std::uint32_t taken = 0;
    std::thread sender([&] {
        for (std::uint32_t number = 0; number < sent; ++number) {
            queue.packet({}, "sent", numbered(number, 4 + number % 60), &far_end, false);
        }
        queue.packet({}, "end", numbered(sent), nullptr, false);
    });
    std::uint32_t next = 0;
    TraceQueue::Event event;
    const auto take_one = [&] {
        if (!queue.take(event)) return false;
        EXPECT_GE(number_of(event), next) << "events are in order";
        next = number_of(event) + 1;
        ++taken;
        return true;
    };
    while (taken + queue.dropped() < sent + 1) static_cast<void>(take_one());
    sender.join();
    while (take_one()) {
    }
    EXPECT_EQ(taken + queue.dropped(), sent + 1);
}

}  // namespace
}  // namespace atp::observe
