// SPDX-License-Identifier: Apache-2.0
#include "client/path_payload.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/path_mtu_search.h"
#include "net/clock.h"
#include "net/route_mtu.h"

namespace atp::client {

Result<std::uint32_t> discover_path_payload(const wire::Address& peer, const Probe& probe) {
    const auto mtu = net::route_mtu(peer);
    if (!mtu) return Failure(mtu.error());
    const std::uint32_t ceiling = control::payload_of_mtu(*mtu, peer.family());
    control::PathMtuSearch search(std::min(control::least_path_payload_bytes, ceiling), ceiling);
    const Time start = net::now();
    while (!search.done()) {
        const std::uint32_t bytes = search.probe_bytes();
        const auto outcome = probe(bytes);
        if (!outcome) return Failure(outcome.error());
        switch (*outcome) {
            case ProbeOutcome::arrived: search.handle_arrived(bytes); break;
            case ProbeOutcome::lost: search.handle_lost(bytes); break;
            case ProbeOutcome::too_long: search.handle_too_long(bytes); break;
        }
    }
    if (search.found_bytes() == 0) {
        return Failure(Error{Operation::receive, Reason::timed_out, 0, to_string(peer), net::now() - start,
                             // errors.md, forms, timed out: the switch answered before this, so packets are lost
                             fmt::format("the switch answered no probe, neither of {} bytes nor of the smallest size: "
                                         "look for packet loss with `atp doctor`",
                                         ceiling)});
    }
    return search.found_bytes();
}

}  // namespace atp::client
