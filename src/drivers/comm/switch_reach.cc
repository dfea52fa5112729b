// SPDX-License-Identifier: Apache-2.0
#include "comm/switch_reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "client/path_payload.h"
#include "net/clock.h"
#include "net/resolve.h"

namespace atp::comm {
namespace {

constexpr Duration probe_wait = std::chrono::milliseconds(100);
// A running switch answers at once; a switch that is starting may take this long.
constexpr Duration longest_start = std::chrono::seconds(30);

Failure refuse_to_join(Reason reason, std::string peer, std::string text) {
    return fail(Operation::join, reason, std::move(peer), std::move(text));
}

std::uint32_t lanes_of_payload(std::uint32_t payload_bytes) {
    return (std::min(payload_bytes, ATP_MAX_PACKET_BYTES) - ATP_HEADER_BYTES) / ATP_LANE_BYTES;
}

}  // namespace

Result<wire::Welcome> greet(client::SwitchClient& client, Time deadline) {
    std::optional<Error> refusal;
    while (true) {
        auto greeting = client.hello(std::min(deadline, net::after(net::now(), longest_start)));
        if (greeting) return std::move(greeting->welcome);
        Error error = greeting.error();
        if (error.reason == Reason::timed_out) {
            // The last reason of the switch helps more than the timeout.
            if (refusal) return tl::unexpected(*std::move(refusal));
            error.text += "; `atp doctor` checks the path";
        }
        if (error.reason != Reason::rejected) return tl::unexpected(std::move(error));
        refusal = std::move(error);
        if (net::now() + probe_wait > deadline) return tl::unexpected(*std::move(refusal));
        std::this_thread::sleep_for(probe_wait);
    }
}

Result<SwitchReach> reach_switch(const Options& options, Time deadline) {
    if (options.switch_address.empty()) {
        return refuse_to_join(
            Reason::malformed, {},
            "no switch is named, and not all ranks share one memory: name a switch, or on every rank an "
            "address to listen at");
    }
    const auto addresses = net::resolve(options.switch_address);
    if (!addresses) return tl::unexpected(addresses.error());
    auto reach = reach_address(addresses->front(), options, deadline);
    if (!reach && reach.error().reason == Reason::timed_out) {
        reach.error().text = fmt::format(
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
                              "multicast needs IPv4: use an IPv4 address of the switch, or disable multicast");
    }
    auto client = client::SwitchClient::open(reach.address);
    if (!client) return tl::unexpected(client.error());
    auto welcome = greet(**client, deadline);
    if (!welcome) return tl::unexpected(welcome.error());
    reach.welcome = *std::move(welcome);
    const auto probe = [&](std::uint32_t bytes) -> Result<client::ProbeOutcome> {
        return (*client)->probe(bytes, deadline, probe_wait);
    };
    const auto payload = client::discover_path_payload(reach.address, probe);
    if (!payload) return tl::unexpected(payload.error());
    const std::uint32_t fits = lanes_of_payload(*payload);
    reach.lanes = fits / 8 * 8;
    if (options.lanes != 0 && options.lanes > fits) {
        return refuse_to_join(
            Reason::too_large, to_string(reach.address),
            fmt::format(
                "{} lanes requested, but the path carries {}: request at most that many, or leave the number unset",
                options.lanes, fits));
    }
    return reach;
}

}  // namespace atp::comm
