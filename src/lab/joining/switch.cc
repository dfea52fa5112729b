// SPDX-License-Identifier: Apache-2.0
#include "joining/switch.h"

#include <algorithm>

namespace atp::joining {
namespace {

constexpr std::size_t longest_packet = 2048;

host::SwitchHostConfig config_of(const wire::Address& address, const wire::Address& parent, std::uint64_t boot) {
    host::SwitchHostConfig config{.address = address, .boot = boot};
    config.shard.table = {.aggregators = 64, .lanes = 4, .jobs = 16};
    config.shard.tree.parent = parent;
    return config;
}

}  // namespace

Switch::Switch(const wire::Address& address, const wire::Address& parent, std::uint64_t boot)
    : host_(config_of(address, parent, boot)) {}

void Switch::handle_packet(Flight& flight, Network& network, Time now) {
    const std::size_t size = flight.bytes.size();
    flight.bytes.resize(std::max(size, longest_packet));
    const wire::Datagram datagram{
        .bytes = std::span(flight.bytes).first(size), .capacity = flight.bytes.size(), .from = &flight.from};
    host_.handle_datagram(datagram, out_, now);
    send(network, now);
}

void Switch::handle_report(const Flight& report, Network& network, Time now) {
    host_.handle_send_error(send_error_of(report), out_, now);
    send(network, now);
}

void Switch::handle_timeout(Network& network, Time now) {
    host_.handle_timeout(out_, now);
    send(network, now);
}

void Switch::send(Network& network, Time now) {
    for (auto& packet : out_.take()) network.send(std::move(packet.bytes), address(), packet.to, now);
}

}  // namespace atp::joining
