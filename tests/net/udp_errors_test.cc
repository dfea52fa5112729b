// SPDX-License-Identifier: Apache-2.0
// What the kernel and the network report about packets that a socket sent earlier.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "net/error_queue.h"
#include "net/udp_socket.h"
#include "own_network.h"
#include "system_calls.h"
#include "udp_fixture.h"

namespace atp::test {
namespace {

using net::UdpConfig;
using net::UdpSocket;
using wire::SendError;

class UdpErrors : public OnLoopback {
  protected:
    [[nodiscard]] static UdpConfig reporting() {
        UdpConfig config = on_loopback(GetParam());
        config.reports_errors = true;
        return config;
    }
    // An address at which no socket listens.
    static wire::Address closed_port() { return open_or_fail(config())->local(); }
    WithSystemCalls calls_;
};
INSTANTIATE_TEST_SUITE_P(Families, UdpErrors, both_families, family_name);

std::vector<SendError> errors_of(UdpSocket& socket) {
    std::array<SendError, 16> errors;
    const std::size_t count = socket.take_errors(errors);
    return {errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::string quote_of(const SendError& error) {
    std::string text(error.quoted_bytes, '\0');
    std::memcpy(text.data(), error.quoted.data(), text.size());
    return text;
}

TEST_P(UdpErrors, ClosedPortIsReportedWithTheBeginOfThePacket) {
    const auto socket = open_or_fail(reporting());
    const wire::Address closed = closed_port();
    const std::string sent = packet(7, 300);
    ASSERT_TRUE(put(*socket, sent, closed));
    EXPECT_EQ(socket->flush().packets, 1U);
    const auto errors = errors_of(*socket);
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_EQ(errors[0].kind, SendError::Kind::port_unreachable);
    EXPECT_TRUE(errors[0].by_network);
    EXPECT_EQ(errors[0].to, closed);
    EXPECT_EQ(quote_of(errors[0]), sent.substr(0, SendError::most_quoted_bytes));
    EXPECT_TRUE(errors_of(*socket).empty());
}

TEST_P(UdpErrors, PacketsToOthersAreSentInSpiteOfAClosedPort) {
    for (const bool mmsg : {true, false}) {
        UdpConfig config = reporting();
        config.mmsg = mmsg;
        const auto from = open_or_fail(config);
        const auto to = open_or_fail(on_loopback(GetParam()));
        const wire::Address closed = closed_port();
        std::vector<std::string> packets;
        for (std::size_t i = 0; i < 50; ++i) {
            ASSERT_TRUE(put(*from, "lost", closed));
            EXPECT_EQ(from->flush().refused, 0U);
            packets.push_back(packet(i, 100));
            ASSERT_TRUE(put(*from, packets.back(), to->local()));
            EXPECT_EQ(from->flush().refused, 0U);
        }
        EXPECT_EQ(bytes_of(receive(*to, packets.size())), packets);
        EXPECT_EQ(from->counters().refused_packets, 0U);
    }
}

TEST_P(UdpErrors, ArrivingPacketsAreReadInSpiteOfAClosedPort) {
    for (const bool mmsg : {true, false}) {
        UdpConfig config = reporting();
        config.mmsg = mmsg;
        const auto socket = open_or_fail(config);
        const auto peer = open_or_fail(on_loopback(GetParam()));
        const wire::Address closed = closed_port();
        for (std::size_t i = 0; i < 20; ++i) {
            ASSERT_TRUE(put(*socket, "lost", closed));
            EXPECT_EQ(socket->flush().packets, 1U);
            ASSERT_TRUE(put(*peer, packet(i, 100), socket->local()));
            EXPECT_EQ(peer->flush().packets, 1U);
            EXPECT_EQ(bytes_of(receive(*socket, 1)), std::vector{packet(i, 100)});
        }
        std::array<wire::Datagram, 4> none;
        ASSERT_TRUE(put(*socket, "lost", closed));
        EXPECT_EQ(socket->flush().packets, 1U);
        EXPECT_EQ(socket->receive(none).value_or(1), 0U) << "an error of an earlier packet is no failure of the socket";
    }
}

TEST_P(UdpErrors, OneCallTakesAsManyAsItHasRoomFor) {
    const auto socket = open_or_fail(reporting());
    const wire::Address closed = closed_port();
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(put(*socket, "lost", closed));
        EXPECT_EQ(socket->flush().packets, 1U);
    }
    std::array<SendError, 2> two;
    EXPECT_EQ(socket->take_errors({}), 0U);
    EXPECT_EQ(socket->take_errors(two), 2U);
    EXPECT_EQ(socket->take_errors(two), 2U);
    EXPECT_EQ(socket->take_errors(two), 1U);
    EXPECT_EQ(socket->take_errors(two), 0U);
}

TEST_P(UdpErrors, SocketThatDoesNotAskGetsNoReports) {
    const auto socket = open_or_fail(config());
    ASSERT_TRUE(put(*socket, "lost", closed_port()));
    EXPECT_EQ(socket->flush().packets, 1U);
    EXPECT_TRUE(errors_of(*socket).empty());
}

TEST_P(UdpErrors, ErrorOfTheMessageItselfIsRefusedAfterOneRepetition) {
    UdpConfig config = reporting();
    config.gso = false;
    const auto socket = open_or_fail(config);
    system_calls.sendmmsg_fails = EHOSTUNREACH;
    ASSERT_TRUE(put(*socket, "no route", closed_port()));
    const net::Flush flush = socket->flush();
    EXPECT_EQ(flush.refused, 1U);
    EXPECT_EQ(flush.refusal, EHOSTUNREACH);
    EXPECT_EQ(system_calls.sendmmsg, 2U);
}

TEST(UdpPathMtu, PacketsLongerThanTheInterfaceAreReportedWithItsMtu) {
    for (const bool gso : {false, true}) {
        const auto found = run_in_own_network(1500, [gso]() -> std::string {
            UdpConfig config = on_loopback(wire::Family::ipv4);
            config.reports_errors = true;
            config.gso = gso;
            const auto from = open_or_fail(config);
            const auto to = open_or_fail(on_loopback(wire::Family::ipv4));
            if (!set_loopback_mtu(1000)) return "the MTU cannot be lowered";
            for (const std::size_t bytes : {500U, 1100U, 1100U, 1200U}) {
                if (!put(*from, packet(1, bytes), to->local())) return "no room";
            }
            if (const auto flush = from->flush(); flush.refused != 3) return "refused " + std::to_string(flush.refused);
            const auto errors = errors_of(*from);
            if (errors.size() != 1) return std::to_string(errors.size()) + " reports";
            const SendError& error = errors[0];
            if (error.kind != SendError::Kind::too_long || error.by_network) return "another kind";
            if (error.to != to->local()) return "to " + to_string(error.to);
            if (error.bytes != 1200) return std::to_string(error.bytes) + " bytes";
            if (error.mtu != 1000) return "MTU " + std::to_string(error.mtu);
            return {};
        });
        if (!found) GTEST_SKIP() << "this host allows no network namespace";
        EXPECT_EQ(*found, "");
    }
}

TEST(ErrorsOfEarlierPackets, AreThoseThatIcmpCauses) {
    for (const int code : {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EMSGSIZE, EPROTO}) {
        EXPECT_TRUE(net::may_concern_earlier_packet(code)) << code;
    }
    for (const int code : {0, EAGAIN, EINTR, EBADF, ENOSYS, ENOMEM, EINVAL, EIO}) {
        EXPECT_FALSE(net::may_concern_earlier_packet(code)) << code;
    }
}

}  // namespace
}  // namespace atp::test
