// SPDX-License-Identifier: Apache-2.0
#include "comm/switch_reach.h"

#include <fmt/format.h>

#include <utility>

#include "client/path_payload.h"
#include "control/path_mtu_search.h"
#include "net/resolve.h"

namespace atp::comm {
namespace {

constexpr Duration probe_wait = std::chrono::milliseconds(100);

Failure refuse_to_join(Reason reason, std::string peer, std::string text) {
    return fail(Operation::join, reason, std::move(peer), std::move(text));
}

}  // namespace

Result<wire::Welcome> greet(client::SwitchClient& client, Time deadline) {
    auto greeting = client.greet(deadline);
    if (greeting) return std::move(greeting->welcome);
    if (greeting.error().reason == Reason::timed_out) greeting.error().text += "; `atp doctor` checks the path";
    return tl::unexpected(std::move(greeting).error());
}

Result<SwitchReach> reach_switch(const Options& options, Time deadline) {
    if (options.switch_address.empty()) {
        return refuse_to_join(
            Reason::malformed, {},
            // errors.md, forms, malformed: ranks on several hosts have neither a switch nor `listen`
            "no switch is named, and not all ranks share one memory: name a switch, or on every rank an "
            "address to listen at");
    }
    const auto addresses = net::resolve(options.switch_address);
    if (!addresses) return tl::unexpected(addresses.error());
    auto reach = reach_address(addresses->front(), options, deadline);
    if (!reach && reach.error().reason == Reason::timed_out) {
        reach.error().text = fmt::format(
            // errors.md, forms, timed out: ranks give up after 30 s, or after a shorter timeout
            "no switch answers: start one there with `atp switch`, or name another one (PyTorch: ATP_SWITCH); "
            "firewalls "
            "must pass UDP; check the path with `atp doctor --switch {}`",
            options.switch_address);
    }
    return reach;
}

Result<SwitchReach> reach_address(const wire::Address& address, const Options& options, Time deadline) {
    SwitchReach reach{.address = address, .welcome = {}, .lanes = 0};
    if (options.multicast.requested && reach.address.family() != wire::Family::ipv4) {
        return refuse_to_join(Reason::unsupported, to_string(reach.address),
                              // errors.md, forms, unsupported
                              "multicast needs IPv4: use an IPv4 address of the switch, or disable multicast");
    }
    auto client = client::SwitchClient::open(reach.address);
    if (!client) return tl::unexpected(client.error());
    auto welcome = greet(**client, deadline);
    if (!welcome) return tl::unexpected(welcome.error());
    reach.welcome = *std::move(welcome);
    const auto probe = [&](std::uint32_t bytes) { return (*client)->probe(bytes, deadline, probe_wait); };
    const auto payload = client::discover_path_payload(reach.address, probe);
    if (!payload) return tl::unexpected(payload.error());
    const std::uint32_t fits = control::lanes_of_payload(*payload);
    reach.lanes = control::usual_lanes(fits);
    if (options.lanes != 0 && options.lanes > fits) {
        return refuse_to_join(
            Reason::too_large, to_string(reach.address),
            fmt::format(
                // errors.md, forms, too large: `lanes` exceeds what the path permits
                "{} lanes requested, but the path carries {}: request at most that many, or leave the number unset",
                options.lanes, fits));
    }
    return reach;
}

}  // namespace atp::comm
