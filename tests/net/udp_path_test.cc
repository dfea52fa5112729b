// SPDX-License-Identifier: Apache-2.0
// A socket on a path that takes only short packets, or takes them slowly.
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <cstdlib>

#include "net/udp_socket.h"
#include "own_network.h"
#include "udp_fixture.h"

namespace atp::test {
namespace {

using net::Feature;
using net::Flush;

// Longest packet that an MTU of 1,500 bytes holds, behind the headers of IP and UDP.
std::uint32_t longest_packet(wire::Family family) { return 1500 - (family == wire::Family::ipv6 ? 40 : 20) - 8; }

class UdpPath : public OnLoopback {};
INSTANTIATE_TEST_SUITE_P(Families, UdpPath, both_families, family_name);

TEST_P(UdpPath, PacketsAboveTheMtuAreRefusedOneByOneAndGsoIsKept) {
    const wire::Family family = GetParam();
    IN_OWN_NETWORK(([family]() -> std::string {
        const auto from = open_or_fail(on_loopback(family));
        const auto to = open_or_fail(on_loopback(family));
        const std::uint32_t fits = longest_packet(family);
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

TEST_P(UdpPath, FragmentedPacketsArriveWhole) {
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
TEST_P(UdpPath, FullSendBufferOnASlowLinkLosesNoPacket) {
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
