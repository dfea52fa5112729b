// SPDX-License-Identifier: Apache-2.0
#include "emulation/port_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace atp::emulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr PortConfig gigabit_port{.rate_bits_per_s = 1'000'000'000, .overhead_bytes = 0};

PortTableConfig room_for(std::uint32_t peers) { return {.in = gigabit_port, .out = gigabit_port, .peers = peers}; }

PortTableConfig losing_table(std::uint64_t seed) {
    return {.in = {.loss = 0.5}, .out = {.loss = 0.5}, .peers = 4, .seed = seed};
}

wire::Address peer(int port) { return wire::Address::loopback(wire::Family::ipv4, static_cast<std::uint16_t>(port)); }

Time after(std::int64_t ms) { return Time(milliseconds(ms)); }

TEST(PortTable, PeerKeepsOnePortPerDirection) {
    PortTable table(room_for(4));
    static_cast<void>(table.in(peer(1), Time())->admit(1000, Time()));
    EXPECT_EQ(table.in(peer(1), Time())->backlog_bytes(Time()), 1000U);
    EXPECT_EQ(table.out(peer(1), Time())->backlog_bytes(Time()), 0U);
    EXPECT_EQ(table.in(peer(2), Time())->backlog_bytes(Time()), 0U);
    EXPECT_EQ(table.size(), 2U);
}

TEST(PortTable, DirectionsHaveSeparateConfigurations) {
    PortTableConfig config = room_for(4);
    config.out.rate_bits_per_s = 2'000'000'000;
    PortTable table(config);
    EXPECT_EQ(table.in(peer(1), Time())->admit(1000, Time()).departs, Time(microseconds(8)));
    EXPECT_EQ(table.out(peer(1), Time())->admit(1000, Time()).departs, Time(microseconds(4)));
}

TEST(PortTable, EmulationInEitherDirectionNeedsTheTable) {
    EXPECT_FALSE(emulates(PortTableConfig{}));
    EXPECT_TRUE(emulates(PortTableConfig{.in = gigabit_port}));
    EXPECT_TRUE(emulates(PortTableConfig{.out = gigabit_port}));
}

TEST(PortTable, FullTableRefusesNewPeersAndServesKnownOnes) {
    PortTable table(room_for(2));
    ASSERT_NE(table.in(peer(1), Time()), nullptr);
    ASSERT_NE(table.out(peer(2), Time()), nullptr);
    EXPECT_EQ(table.in(peer(3), Time()), nullptr);
    EXPECT_EQ(table.out(peer(3), Time()), nullptr);
    EXPECT_NE(table.in(peer(1), Time()), nullptr);
    EXPECT_EQ(table.size(), 2U);
    EXPECT_EQ(table.refused(), 2U);
}

TEST(PortTable, TableWithoutEntriesRefusesAllPeers) {
    PortTable table(room_for(0));
    EXPECT_EQ(table.in(peer(1), Time()), nullptr);
    table.forget_idle(Time(seconds(100)));
    EXPECT_EQ(table.size(), 0U);
}

TEST(PortTable, IdlePeerIsReplacedByANewOne) {
    PortTable table(room_for(2));
    ASSERT_NE(table.in(peer(1), after(0)), nullptr);
    ASSERT_NE(table.in(peer(2), after(0)), nullptr);
    ASSERT_NE(table.out(peer(1), after(5'000)), nullptr) << "either direction is use";
    EXPECT_EQ(table.in(peer(3), after(9'999)), nullptr);
    ASSERT_NE(table.in(peer(3), after(10'000)), nullptr);
    const auto peers = table.peers();
    ASSERT_EQ(peers.size(), 2U);
    EXPECT_EQ(peers[0].peer, peer(3));
    EXPECT_EQ(peers[1].peer, peer(1));
}

TEST(PortTable, IdlePeersAreForgottenInOrderOfTheirLastUse) {
    PortTable table(room_for(8));
    for (int nth = 0; nth < 8; ++nth) ASSERT_NE(table.in(peer(nth), after(nth)), nullptr);
    for (const int nth : {0, 3, 7}) ASSERT_NE(table.in(peer(nth), after(100 + nth)), nullptr);
    table.forget_idle(after(9'999));
    EXPECT_EQ(table.size(), 8U);
    table.forget_idle(after(10'006));
    ASSERT_EQ(table.size(), 3U);
    table.forget_idle(after(10'102));
    ASSERT_EQ(table.size(), 2U);
    EXPECT_EQ(table.peers()[0].peer, peer(7));
    table.forget_idle(after(20'000));
    EXPECT_EQ(table.size(), 0U);
    EXPECT_TRUE(table.peers().empty());
}

TEST(PortTable, PeerWithAQueueIsKept) {
    PortTableConfig config = room_for(1);
    config.out.rate_bits_per_s = 8;  // 1 byte per second
    PortTable table(config);
    static_cast<void>(table.out(peer(1), after(0))->admit(30, after(0)));
    EXPECT_EQ(table.in(peer(2), after(29'999)), nullptr);
    EXPECT_NE(table.in(peer(2), after(30'000)), nullptr);
}

TEST(PortTable, TotalsIncludeForgottenPeers) {
    PortTableConfig config = room_for(2);
    config.out.loss = 1;
    PortTable table(config);
    for (const int nth : {1, 2}) {
        static_cast<void>(table.in(peer(nth), after(0))->admit(100, after(0)));
        static_cast<void>(table.out(peer(nth), after(0))->admit(100, after(0)));
    }
    table.forget_idle(after(20'000));
    ASSERT_EQ(table.size(), 0U);
    static_cast<void>(table.in(peer(3), after(20'000))->admit(50, after(20'000)));
    EXPECT_EQ(table.totals().in.passed, 3U);
    EXPECT_EQ(table.totals().in.bytes, 250U);
    EXPECT_EQ(table.totals().out.dropped_loss, 2U);
    ASSERT_EQ(table.peers().size(), 1U);
    EXPECT_EQ(table.peers()[0].counters.in.passed, 1U) << "a new peer begins at nothing";
}

std::vector<bool> losses(EmulatedPort* port) {
    std::vector<bool> lost(200);
    for (auto packet : lost) packet = port->admit(1, Time()).verdict == Verdict::drop_loss;
    return lost;
}

TEST(PortTable, LossesDependOnTheSeedAndOrderOfPeers) {
    PortTable first(losing_table(1));
    PortTable second(losing_table(1));
    PortTable other(losing_table(2));
    const auto in = losses(first.in(peer(1), Time()));
    const auto out = losses(first.out(peer(1), Time()));
    const auto next = losses(first.in(peer(2), Time()));
    EXPECT_NE(in, out);
    EXPECT_NE(in, next);
    EXPECT_NE(out, next);
    EXPECT_EQ(losses(second.in(peer(77), Time())), in);
    EXPECT_EQ(losses(second.in(peer(76), Time())), next);
    EXPECT_NE(losses(other.in(peer(1), Time())), in);
}

// Addresses whose hashes have the same low bits: they share a bucket in any table of up to 2^12 buckets.
std::vector<wire::Address> colliding(std::size_t count) {
    constexpr std::uint64_t low_bits = (1 << 12) - 1;
    std::vector<wire::Address> found;
    const std::uint64_t bucket = peer(1).hash() & low_bits;
    for (std::uint32_t host = 0; found.size() < count && host < 256; ++host) {
        const auto base = *wire::Address::parse("10.0.0." + std::to_string(host) + ":0");
        for (std::uint32_t port = 0; found.size() < count && port < 65'536; ++port) {
            const wire::Address address = base.with_port(static_cast<std::uint16_t>(port));
            if ((address.hash() & low_bits) == bucket) found.push_back(address);
        }
    }
    return found;
}

TEST(PortTable, PeersWithEqualHashesHaveSeparatePorts) {
    const auto addresses = colliding(64);
    ASSERT_EQ(addresses.size(), 64U);
    PortTable table(room_for(64));
    for (std::uint32_t nth = 0; nth < 64; ++nth) {
        static_cast<void>(table.in(addresses[nth], after(nth))->admit(nth, after(nth)));
    }
    for (const PeerPorts& known : table.peers()) {
        const auto nth = static_cast<std::uint64_t>(std::ranges::find(addresses, known.peer) - addresses.begin());
        EXPECT_EQ(known.counters.in.bytes, nth);
    }
    // After the first, the middle and the last of the bucket are removed, the others must still be found.
    for (std::uint32_t nth = 0; nth < 64; ++nth) {
        if (nth % 3 == 0) continue;
        ASSERT_NE(table.out(addresses[nth], after(5'000)), nullptr);
    }
    table.forget_idle(after(12'000));
    EXPECT_EQ(table.size(), 42U);
    for (std::uint32_t nth = 0; nth < 64; ++nth) {
        const std::uint64_t bytes = table.in(addresses[nth], after(12'000))->counters().bytes;
        EXPECT_EQ(bytes, nth % 3 == 0 ? 0U : nth);
    }
    EXPECT_EQ(table.size(), 64U);
}

// Compares the table with a std::map.
TEST(PortTable, RandomUseMatchesAMap) {
    struct Known {
        std::int64_t used_ms = 0;
        std::uint64_t packets = 0;
    };
    constexpr std::uint32_t limit = 50;
    PortTable table(room_for(limit));
    std::unordered_map<wire::Address, Known> known;
    std::mt19937_64 random(17);
    std::uint64_t refused = 0;
    std::uint64_t passed = 0;
    std::uint64_t forgotten = 0;
    for (std::int64_t ms = 0; ms < 500'000; ms += static_cast<std::int64_t>(random() % 20)) {
        const Time now = after(ms);
        const wire::Address address = peer(static_cast<int>(random() % (ms / 100'000 % 2 == 0 ? 2000 : 40)));
        const bool sweep = random() % 16 == 0;
        if (sweep) table.forget_idle(now);
        if (sweep || !known.contains(address)) {
            forgotten += std::erase_if(known, [ms](const auto& entry) { return ms - entry.second.used_ms >= 10'000; });
        }
        EmulatedPort* const port = table.in(address, now);
        if (!known.contains(address) && known.size() == limit) {
            ASSERT_EQ(port, nullptr);
            ++refused;
            continue;
        }
        ASSERT_NE(port, nullptr);
        Known& entry = known[address];
        ASSERT_EQ(port->counters().passed, entry.packets);
        static_cast<void>(port->admit(100, now));
        entry = {ms, entry.packets + 1};
        ++passed;
        ASSERT_EQ(table.size(), known.size());
    }
    EXPECT_EQ(table.refused(), refused);
    EXPECT_EQ(table.totals().in.passed, passed);
    EXPECT_GT(refused, 100U);
    EXPECT_GT(forgotten, 100U);
}

}  // namespace
}  // namespace atp::emulation
