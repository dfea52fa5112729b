// SPDX-License-Identifier: Apache-2.0
#include "client/path_payload.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "control/path_mtu_search.h"
#include "own_network.h"
#include "udp_fixture.h"

namespace atp::test {
namespace {

using client::discover_path_payload;
using client::ProbeOutcome;
using control::payload_of_mtu;
using net::Flush;
using net::UdpSocket;

class PathPayload : public OnLoopback {};
INSTANTIATE_TEST_SUITE_P(Families, PathPayload, both_families, family_name);

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

TEST_P(PathPayload, IsTheLargestThatASocketCanSend) {
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

}  // namespace
}  // namespace atp::test
