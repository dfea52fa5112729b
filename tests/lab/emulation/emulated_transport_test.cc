// SPDX-License-Identifier: Apache-2.0
// Emulated links on real sockets of loopback.
#include "emulation/emulated_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "net/clock.h"
#include "net/udp_socket.h"
#include "wire/control.h"

namespace atp::emulation {
namespace {

using std::chrono::milliseconds;

net::UdpConfig anywhere() { return {.local = wire::Address::loopback(wire::Family::ipv4, 0)}; }

struct Pair {
    explicit Pair(const PortConfig& port, std::uint32_t held_packets = 4096)
        : peer(std::move(*net::UdpSocket::open(anywhere()))),
          emulated(std::move(*EmulatedTransport::open(
              anywhere(), {.ports = {.in = port, .out = port}, .held_packets = held_packets}))) {}

    std::unique_ptr<net::UdpSocket> peer;
    std::unique_ptr<net::Transport> emulated;
};

void send(net::Transport& from, const std::vector<std::byte>& bytes, const wire::Address& to) {
    const auto room = from.reserve(bytes.size());
    std::memcpy(room.data(), bytes.data(), bytes.size());
    from.commit(bytes.size(), to, wire::Ecn::capable_0);
    from.flush();
}

struct Arrived {
    std::vector<std::byte> bytes;
    wire::Ecn ecn = wire::Ecn::not_capable;
};

// Receives until `count` packets have arrived, or for `at_most`.
std::vector<Arrived> receive(net::Transport& at, std::size_t count, Duration at_most = std::chrono::seconds(10)) {
    std::vector<Arrived> arrived;
    std::array<wire::Datagram, 8> datagrams;
    for (const Time until = net::now() + at_most; arrived.size() < count && net::now() < until;) {
        const auto received = at.receive(datagrams);
        for (std::size_t i = 0; i < received.value_or(0); ++i) {
            arrived.push_back({{datagrams[i].bytes.begin(), datagrams[i].bytes.end()}, datagrams[i].ecn});
        }
        if (received.value_or(0) == 0) std::this_thread::sleep_for(milliseconds(1));
    }
    return arrived;
}

std::vector<std::byte> packet(std::uint8_t number, std::size_t size = 100) {
    return std::vector<std::byte>(size, std::byte{number});
}

nlohmann::json counters(const net::Transport& transport, const char* direction) {
    return nlohmann::json::parse(transport.report_parts())["ports"].at(0)[direction];
}

TEST(EmulatedTransport, PacketsPassInBothDirectionsWithoutALimit) {
    Pair pair({});
    send(*pair.peer, packet(1), pair.emulated->local());
    send(*pair.emulated, packet(2), pair.peer->local());
    EXPECT_EQ(receive(*pair.emulated, 1).at(0).bytes, packet(1));
    EXPECT_EQ(receive(*pair.peer, 1).at(0).bytes, packet(2));
    EXPECT_EQ(counters(*pair.emulated, "in")["passed"], 1);
    EXPECT_EQ(counters(*pair.emulated, "out")["passed"], 1);
}

TEST(EmulatedTransport, RateDelaysPacketsAndKeepsTheirOrder) {
    Pair pair({.rate_bits_per_s = 1'000'000});  // 1000 bytes take 8 ms
    const Time begin = net::now();
    for (std::uint8_t number = 0; number < 5; ++number) send(*pair.peer, packet(number, 1000), pair.emulated->local());
    const auto arrived = receive(*pair.emulated, 5);
    ASSERT_EQ(arrived.size(), 5U);
    EXPECT_GE(net::now() - begin, milliseconds(5 * 8));
    for (std::uint8_t number = 0; number < 5; ++number) EXPECT_EQ(arrived[number].bytes, packet(number, 1000));
    EXPECT_EQ(pair.emulated->poll_timeout(), never) << "no packet is queued";
}

TEST(EmulatedTransport, SentPacketsWaitForTheirDepartureTime) {
    Pair pair({.rate_bits_per_s = 1'000'000});
    for (std::uint8_t number = 0; number < 3; ++number) send(*pair.emulated, packet(number, 1000), pair.peer->local());
    EXPECT_NE(pair.emulated->poll_timeout(), never);
    std::vector<Arrived> arrived;
    for (const Time until = net::now() + std::chrono::seconds(10); arrived.size() < 3 && net::now() < until;) {
        std::array<wire::Datagram, 8> none;
        EXPECT_EQ(pair.emulated->receive(none).value_or(1), 0U);
        pair.emulated->flush();
        for (Arrived& packet : receive(*pair.peer, 1, milliseconds(2))) arrived.push_back(std::move(packet));
    }
    ASSERT_EQ(arrived.size(), 3U);
    for (std::uint8_t number = 0; number < 3; ++number) EXPECT_EQ(arrived[number].bytes, packet(number, 1000));
}

TEST(EmulatedTransport, MulticastPacketIsCopiedToEachReceiver) {
    Pair pair({});
    const auto second = std::move(*net::UdpSocket::open(anywhere()));
    const auto bytes = packet(7);
    EXPECT_TRUE(pair.emulated->borrow(bytes, pair.peer->local(), wire::Ecn::capable_0));
    EXPECT_TRUE(pair.emulated->repeat(second->local()));
    pair.emulated->flush();
    EXPECT_EQ(receive(*pair.peer, 1).at(0).bytes, bytes);
    EXPECT_EQ(receive(*second, 1).at(0).bytes, bytes);
    EXPECT_FALSE(pair.emulated->reaches_groups());
}

TEST(EmulatedTransport, LossDropsGradientsAndNoControlMessages) {
    Pair pair({.loss = 1});
    std::vector<std::byte> hello(64);
    ASSERT_NE(wire::encode(wire::Hello{.nonce = 5}, hello, hello.size()), 0U);
    send(*pair.peer, packet(1), pair.emulated->local());
    send(*pair.peer, hello, pair.emulated->local());
    send(*pair.emulated, packet(2), pair.peer->local());
    send(*pair.emulated, hello, pair.peer->local());
    EXPECT_EQ(receive(*pair.emulated, 1).at(0).bytes, hello);
    EXPECT_EQ(receive(*pair.peer, 1).at(0).bytes, hello);
    EXPECT_EQ(counters(*pair.emulated, "in")["dropped_loss"], 1);
    EXPECT_EQ(counters(*pair.emulated, "out")["dropped_loss"], 1);
}

TEST(EmulatedTransport, QueueAboveItsThresholdMarksPackets) {
    Pair pair({.rate_bits_per_s = 10'000'000, .ecn_bytes = 1500});
    for (std::uint8_t number = 0; number < 4; ++number) send(*pair.peer, packet(number, 1000), pair.emulated->local());
    const auto arrived = receive(*pair.emulated, 4);
    ASSERT_EQ(arrived.size(), 4U);
    EXPECT_NE(arrived.front().ecn, wire::Ecn::congested);
    EXPECT_EQ(arrived.back().ecn, wire::Ecn::congested);
}

TEST(EmulatedTransport, PacketWithoutRoomInTheQueueIsDroppedAndCounted) {
    Pair pair({.rate_bits_per_s = 1'000'000}, 1);
    for (std::uint8_t number = 0; number < 4; ++number) send(*pair.peer, packet(number, 1000), pair.emulated->local());
    EXPECT_EQ(receive(*pair.emulated, 4, milliseconds(100)).size(), 1U);
    EXPECT_EQ(nlohmann::json::parse(pair.emulated->report_parts())["unheld"], 3);
}

// `atp doctor` looks for this key in the report of a switch.
TEST(EmulatedTransport, ConfigurationIsReportedUnderItsOwnKey) {
    const PortConfig port{.rate_bits_per_s = 1'000'000, .queue_bytes = 3000, .ecn_bytes = 900, .loss = 0.25};
    EXPECT_EQ(nlohmann::json::parse(report_of({.in = port, .out = port})),
              nlohmann::json::parse(
                  R"({"emulated_ports":{"rate_bps":1000000,"queue_bytes":3000,"ecn_bytes":900,"loss":0.25}})"));
}

}  // namespace
}  // namespace atp::emulation
