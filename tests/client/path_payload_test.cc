// SPDX-License-Identifier: Apache-2.0
#include "client/path_payload.h"
#include "control/path_mtu_search.h"
#include "net/route_mtu.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "own_network.h"
#include "udp_fixture.h"

namespace atp::test {
namespace {

using client::discover_path_payload;
using client::ProbeOutcome;
using control::payload_of_mtu;
using net::Feature;
using net::Flush;
using net::route_mtu;
using net::UdpSocket;

class Path : public OnLoopback {};
INSTANTIATE_TEST_SUITE_P(Families, Path, both_families, family_name);

// Runs the body in a network whose loopback has Ethernet's MTU.
#define IN_OWN_NETWORK(body)                                                   \
    const auto found = run_in_own_network(1500, body);                         \
    if (!found) GTEST_SKIP() << "this user cannot create a network namespace"; \
    EXPECT_EQ(*found, "")

TEST_P(Path, RouteReportsTheMtuOfItsInterface) {
    const wire::Family family = GetParam();
    IN_OWN_NETWORK(([family]() -> std::string {
        const auto mtu = route_mtu(wire::Address::loopback(family, 9));
        if (!mtu) return to_string(mtu.error());
        return *mtu == 1500 ? "" : "MTU " + std::to_string(*mtu);
    }));
}

TEST_P(Path, MissingRouteIsUnreachable) {
    const wire::Family family = GetParam();
    IN_OWN_NETWORK(([family]() -> std::string {
        const bool v6 = family == wire::Family::ipv6;
        const auto mtu = route_mtu(*wire::Address::parse(v6 ? "[2001:db8::1]:9" : "192.0.2.1:9"));
        if (mtu) return "MTU " + std::to_string(*mtu) + " to nowhere";
        return mtu.error().reason == Reason::unreachable ? "" : to_string(mtu.error());
    }));
}

// Sends a probe from one socket to the other. The path drops probes longer than `limit`.
client::Probe probe_between(UdpSocket& from, UdpSocket& to, std::uint32_t limit) {
    return [&from, &to, limit](std::uint32_t bytes) -> Result<ProbeOutcome> {
        if (!put(from, packet(0, bytes), to.local())) return fail(Operation::send, Reason::failed, "", "full");
        const Flush flush = from.flush();
        if (flush.refusal == EMSGSIZE) return ProbeOutcome::too_long;
        const auto arrivals = receive(to, 1);
        return arrivals.size() == 1 && arrivals[0].bytes.size() == bytes && bytes <= limit ? ProbeOutcome::arrived
                                                                                           : ProbeOutcome::lost;
    };
}

TEST_P(Path, DiscoveryFindsTheLargestPayloadThatASocketCanSend) {
    const wire::Family family = GetParam();
    IN_OWN_NETWORK(([family]() -> std::string {
        const auto from = open_or_fail(on_loopback(family));
        const auto to = open_or_fail(on_loopback(family));
        const std::uint32_t whole = payload_of_mtu(1500, family);
        const auto wide = discover_path_payload(to->local(), probe_between(*from, *to, 9000));
        if (!wide || *wide != whole) return "wide: " + (wide ? std::to_string(*wide) : to_string(wide.error()));
        const auto tunnel = discover_path_payload(to->local(), probe_between(*from, *to, 1400));
        if (!tunnel || *tunnel > 1400 || *tunnel < 1392) {
            return "tunnel: " + (tunnel ? std::to_string(*tunnel) : to_string(tunnel.error()));
        }
        const auto dead = discover_path_payload(to->local(), probe_between(*from, *to, 0));
        if (dead || dead.error().reason != Reason::timed_out) return "a dead path answered";
        return "";
    }));
}

TEST_P(Path, PacketsAboveTheMtuAreRefusedOneByOneAndGsoIsKept) {
    const wire::Family family = GetParam();
    IN_OWN_NETWORK(([family]() -> std::string {
        const auto from = open_or_fail(on_loopback(family));
        const auto to = open_or_fail(on_loopback(family));
        const std::uint32_t fits = payload_of_mtu(1500, family);
        for (std::size_t at = 0; at < 10; ++at) {
            if (!put(*from, packet(at, fits + 1), to->local())) return "full";
        }
        const Flush refused = from->flush();
        if (refused.refused != 10 || refused.packets != 0 || refused.refusal != EMSGSIZE) return "not refused";
        if (!from->report().in_use(Feature::gso)) return "GSO given up";
        // Five packets that are one byte too long, then five that fit: the kernel refuses the first five, the others
        // arrive.
        for (std::size_t at = 0; at < 10; ++at) {
            if (!put(*from, packet(at, fits + (at < 5 ? 1 : 0)), to->local())) return "full";
        }
        const Flush mixed = from->flush();
        if (mixed.refused != 5 || mixed.packets != 5) return "not the five that fit";
        if (!from->report().in_use(Feature::gso)) return "GSO given up for packets that fit";
        if (from->counters().sent_messages != 2) return "the last four that fit not as one message";
        if (receive(*to, 5).size() != 5) return "not received";
        const std::uint64_t messages = from->counters().sent_messages;
        for (std::size_t at = 0; at < 10; ++at) {
            if (!put(*from, packet(at, fits), to->local())) return "full";
        }
        if (from->flush().packets != 10) return "not sent";
        if (receive(*to, 10).size() != 10) return "not received";
        return from->counters().sent_messages == messages + 1 ? "" : "not as one message";
    }));
}

TEST_P(Path, FragmentedPacketsArriveWhole) {
    const wire::Family family = GetParam();
    IN_OWN_NETWORK(([family]() -> std::string {
        auto config = on_loopback(family);
        config.forbid_fragments = false;
        const auto from = open_or_fail(config);
        const auto to = open_or_fail(on_loopback(family));
        for (std::size_t at = 0; at < 10; ++at) {
            if (!put(*from, packet(at, 4000), to->local())) return "full";
        }
        if (from->flush().packets != 10) return "not sent";
        const auto arrivals = receive(*to, 10);
        for (std::size_t at = 0; at < arrivals.size(); ++at) {
            if (arrivals[at].bytes != packet(at, 4000)) return "not as sent";
        }
        return arrivals.size() == 10 ? "" : std::to_string(arrivals.size()) + " of 10 arrived";
    }));
}

// A link slower than the sender: the kernel reports that the buffer is full, and when it has room again.
TEST_P(Path, FullSendBufferOnASlowLinkLosesNoPacket) {
    const wire::Family family = GetParam();
    if (std::system("tc -Version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no tc on this machine";
    IN_OWN_NETWORK(([family]() -> std::string {
        if (std::system("tc qdisc add dev lo root tbf rate 40mbit burst 16kb limit 64mb") != 0)
            return not_possible_here;
        auto config = on_loopback(family);
        config.send_buffer_bytes = 32'768;
        const auto from = open_or_fail(config);
        const auto to = open_or_fail(on_loopback(family));
        for (std::size_t at = 0; at < 400; ++at) {
            if (!put(*from, packet(at, 1400), to->local())) return "full";
        }
        std::uint32_t sent = 0;
        std::uint32_t times_full = 0;
        for (;;) {
            const Flush flush = from->flush();
            sent += flush.packets;
            if (flush.refused != 0) return "refused";
            if (flush.waiting == 0) break;
            ++times_full;
            pollfd writable{from->descriptor(), POLLOUT, 0};
            if (::poll(&writable, 1, 5000) != 1) return "never writable again";
        }
        const auto arrivals = receive(*to, 400);
        for (std::size_t at = 0; at < arrivals.size(); ++at) {
            if (arrivals[at].bytes != packet(at, 1400)) return "out of order";
        }
        if (sent != 400 || arrivals.size() != 400) return std::to_string(arrivals.size()) + " arrived";
        return times_full != 0 ? "" : "the buffer was never full";
    }));
}

}  // namespace
}  // namespace atp::test
