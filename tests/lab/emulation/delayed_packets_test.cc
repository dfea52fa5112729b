// SPDX-License-Identifier: Apache-2.0
#include "emulation/delayed_packets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/emulated_port.h"

namespace atp::emulation {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

wire::Address peer(std::size_t port) {
    return wire::Address::loopback(wire::Family::ipv4, static_cast<std::uint16_t>(port));
}

Time at(std::int64_t us) { return Time(microseconds(us)); }

bool hold(DelayedPackets& held, std::string_view text, Time departs, const wire::Address& to = peer(1)) {
    return held.hold(std::as_bytes(std::span(text)), to, wire::Ecn::capable_0, DelayedFor::sending, departs);
}

std::string text_of(const DelayedPacket& packet) {
    return {reinterpret_cast<const char*>(packet.bytes.data()), packet.bytes.size()};
}

std::vector<std::string> pop_all(DelayedPackets& held, Time now) {
    std::vector<std::string> texts;
    while (const auto packet = held.pop_due(now)) texts.push_back(text_of(*packet));
    return texts;
}

using Texts = std::vector<std::string>;

TEST(DelayedPackets, PacketKeepsItsBytesPeerMarkAndPurpose) {
    DelayedPackets held(4, 100);
    constexpr std::string_view text = "gradient";
    const auto bytes = std::as_bytes(std::span(text));
    ASSERT_TRUE(held.hold(bytes, peer(7), wire::Ecn::congested, DelayedFor::processing, at(1)));
    ASSERT_TRUE(held.hold(bytes, *wire::Address::parse("[2001:db8::1]:4791"), wire::Ecn::capable_1, DelayedFor::sending,
                          at(2)));
    const auto first = held.pop_due(at(2));
    ASSERT_TRUE(first);
    EXPECT_EQ(text_of(*first), text);
    EXPECT_EQ(first->peer, peer(7));
    EXPECT_EQ(first->ecn, wire::Ecn::congested);
    EXPECT_EQ(first->purpose, DelayedFor::processing);
    EXPECT_EQ(first->departs, at(1));
    EXPECT_EQ(first->capacity, 100U);
    const auto second = held.pop_due(at(2));
    ASSERT_TRUE(second);
    EXPECT_EQ(second->peer, *wire::Address::parse("[2001:db8::1]:4791"));
    EXPECT_EQ(second->ecn, wire::Ecn::capable_1);
    EXPECT_EQ(second->purpose, DelayedFor::sending);
}

TEST(DelayedPackets, PacketIsReleasedAtItsDeparture) {
    DelayedPackets held(4, 10);
    EXPECT_EQ(held.next_departure(), never);
    EXPECT_FALSE(held.pop_due(at(1'000'000)));
    ASSERT_TRUE(hold(held, "late", at(20)));
    ASSERT_TRUE(hold(held, "soon", at(10)));
    EXPECT_EQ(held.next_departure(), at(10));
    EXPECT_FALSE(held.pop_due(at(10) - nanoseconds(1)));
    EXPECT_EQ(pop_all(held, at(10)), Texts{"soon"});
    EXPECT_EQ(held.next_departure(), at(20));
    EXPECT_EQ(pop_all(held, at(100)), Texts{"late"});
    EXPECT_EQ(held.next_departure(), never);
    EXPECT_EQ(held.size(), 0U);
}

TEST(DelayedPackets, PacketsOfOneDepartureKeepTheirOrder) {
    DelayedPackets held(100, 10);
    Texts expected;
    for (int nth = 0; nth < 100; ++nth) {
        expected.push_back(std::to_string(nth));
        ASSERT_TRUE(hold(held, expected.back(), at(5)));
    }
    EXPECT_EQ(pop_all(held, at(5)), expected);
}

TEST(DelayedPackets, FullStoreRefusesAPacketAndKeepsTheOthers) {
    DelayedPackets held(3, 10);
    for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(hold(held, text, at(1)));
    EXPECT_TRUE(held.full());
    EXPECT_FALSE(hold(held, "d", at(0)));
    EXPECT_EQ(held.next_departure(), at(1));
    ASSERT_TRUE(held.pop_due(at(1)));
    EXPECT_TRUE(hold(held, "e", at(1))) << "beside the one in the caller's hands";
    EXPECT_FALSE(hold(held, "f", at(1)));
    EXPECT_EQ(pop_all(held, at(1)), (Texts{"b", "c", "e"}));
}

TEST(DelayedPackets, PacketLongerThanASlotIsRefused) {
    DelayedPackets held(3, 10);
    EXPECT_FALSE(hold(held, "12345678901", at(1)));
    EXPECT_TRUE(hold(held, "1234567890", at(1)));
    EXPECT_TRUE(hold(held, "", at(1)));
    EXPECT_EQ(pop_all(held, at(1)), (Texts{"1234567890", ""}));
}

TEST(DelayedPackets, StoreWithoutSlotsRefusesEveryPacket) {
    DelayedPackets held(0, 10);
    EXPECT_FALSE(hold(held, "a", at(1)));
    EXPECT_FALSE(held.pop_due(never));
}

// Processing a packet creates packets to send, which must not overwrite it.
TEST(DelayedPackets, PoppedPacketKeepsItsBytesWhileOthersAreHeld) {
    DelayedPackets held(3, 100);
    for (const char* text : {"first", "second", "third"}) ASSERT_TRUE(hold(held, text, at(1)));
    const auto first = held.pop_due(at(1));
    ASSERT_TRUE(first);
    ASSERT_TRUE(hold(held, "made of it", at(2)));
    EXPECT_EQ(text_of(*first), "first");
    EXPECT_EQ(pop_all(held, at(2)), (Texts{"second", "third", "made of it"}));
}

TEST(DelayedPackets, PoppedPacketMayGrowToItsCapacity) {
    DelayedPackets held(3, 100);
    for (const char* text : {"first", "second"}) ASSERT_TRUE(hold(held, text, at(1)));
    const auto first = held.pop_due(at(1));
    ASSERT_TRUE(first);
    std::memset(first->bytes.data(), 'x', first->capacity);
    EXPECT_EQ(pop_all(held, at(1)), Texts{"second"});
}

TEST(DelayedPackets, RandomHoldsAndReleasesKeepTheOrder) {
    constexpr std::uint32_t slots = 257;
    DelayedPackets held(slots, 16);
    std::multimap<Time, std::string> expected;  // keeps the order of insertion for equal times
    std::mt19937_64 random(11);
    std::int64_t now = 0;
    int refused = 0;
    for (int nth = 0; nth < 100'000; ++nth) {
        if (random() % 100 < 60) {
            const Time departs = at(now + static_cast<std::int64_t>(random() % 300));
            const std::string text = std::to_string(nth);
            ASSERT_EQ(hold(held, text, departs), expected.size() < slots);
            expected.size() < slots ? static_cast<void>(expected.emplace(departs, text)) : static_cast<void>(++refused);
        } else {
            ++now;
            for (auto next = expected.begin(); next != expected.end() && next->first <= at(now);
                 next = expected.erase(next)) {
                const auto packet = held.pop_due(at(now));
                ASSERT_TRUE(packet);
                ASSERT_EQ(text_of(*packet), next->second);
                ASSERT_EQ(packet->departs, next->first);
            }
            ASSERT_FALSE(held.pop_due(at(now)));
        }
        ASSERT_EQ(held.size(), expected.size());
        ASSERT_EQ(held.next_departure(), expected.empty() ? never : expected.begin()->first);
    }
    EXPECT_GT(refused, 0) << "it was never full: the test tests little";
}

// Ports of different rates share one pool, and the driver wakes up only every 50 us.
class Driven {
  public:
    explicit Driven(const std::vector<std::int64_t>& rates) : held_(4096, 16) {
        for (const std::int64_t rate : rates) {
            ports_.emplace_back(
                PortConfig{
                    .rate_bits_per_s = rate, .queue_bytes = 100'000, .overhead_bytes = 0, .early = microseconds(50)},
                1);
            received_.emplace_back();
        }
    }

    void release(Time now) {
        while (const auto packet = held_.pop_due(now)) deliver(packet->peer.port(), *packet);
    }
    void offer(std::size_t port, const std::string& text, std::uint32_t bytes, Time now) {
        const Admission admission = ports_[port].admit(bytes, now);
        if (admission.verdict == Verdict::pass_now) received_[port].push_back(text);
        if (admission.verdict != Verdict::hold) return;
        ASSERT_TRUE(hold(held_, text, admission.departs, peer(port)));
    }
    [[nodiscard]] const Texts& received(std::size_t port) const { return received_[port]; }

  private:
    void deliver(std::size_t port, const DelayedPacket& packet) { received_[port].push_back(text_of(packet)); }

    DelayedPackets held_;
    std::vector<EmulatedPort> ports_;
    std::vector<Texts> received_;
};

TEST(DelayedPackets, PortsThatShareTheStoreKeepTheirOrderAndRates) {
    const std::vector<std::int64_t> rates{100'000'000, 1'000'000'000, 3'000'000'000};
    Driven driven(rates);
    std::mt19937_64 random(13);
    constexpr std::uint32_t packet_bytes = 1000;
    int number = 1'000'000;  // equal lengths, so that texts sort like their numbers
    Time now;
    for (int round = 0; round < 20'000; ++round, now += microseconds(50)) {
        driven.release(now);
        for (std::size_t port = 0; port < rates.size(); ++port) {
            const std::uint64_t burst = 19 + random() % 30;  // more than any port can send meanwhile
            for (std::uint64_t nth = 0; nth < burst; ++nth) {
                driven.offer(port, std::to_string(number++), packet_bytes, now);
            }
        }
    }
    driven.release(now);
    for (std::size_t port = 0; port < rates.size(); ++port) {
        const Texts& received = driven.received(port);
        EXPECT_TRUE(std::ranges::is_sorted(received)) << "port " << port;
        const double sendable = static_cast<double>(rates[port]) / 8 / packet_bytes;  // in the elapsed second
        EXPECT_NEAR(static_cast<double>(received.size()), sendable, 1) << "port " << port;
    }
}

}  // namespace
}  // namespace atp::emulation
