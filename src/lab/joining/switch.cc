// SPDX-License-Identifier: Apache-2.0
#include "joining/switch.h"

#include <algorithm>

#include "base/random.h"

namespace atp::joining {
namespace {

constexpr std::uint64_t boot_stream = 0x6a04;
constexpr std::size_t longest_packet = 2048;

endpoint::ShardMachineConfig config_of(const wire::Address& parent, std::uint64_t boot) {
    Random random(boot, boot_stream);
    endpoint::ShardMachineConfig config;
    config.table = {.aggregators = 64, .lanes = 4, .jobs = 16};
    config.tree.parent = parent;
    config.tree.nonce = random.next();
    config.tree.secret = {random.next(), random.next()};
    return config;
}

}  // namespace

Switch::Switch(const wire::Address& address, const wire::Address& parent, std::uint64_t boot)
    : address_(address), machine_(config_of(parent, boot), nullptr) {}

void Switch::handle_packet(Flight& flight, Network& network, Time now) {
    const std::size_t size = flight.bytes.size();
    flight.bytes.resize(std::max(size, longest_packet));
    const wire::Datagram datagram{
        .bytes = std::span(flight.bytes).first(size), .capacity = flight.bytes.size(), .from = &flight.from};
    machine_.handle_batch({&datagram, 1}, out_, now);
    send(network, now);
}

void Switch::handle_report(const Flight& report, Network& network, Time now) {
    machine_.handle_send_error(send_error_of(report), out_, now);
    send(network, now);
}

void Switch::handle_timeout(Network& network, Time now) {
    machine_.handle_timeout(out_, now);
    send(network, now);
}

void Switch::send(Network& network, Time now) {
    while (machine_.poll_event()) {
    }
    for (PacketList::Packet& packet : out_.take()) network.send(std::move(packet.bytes), address_, packet.to, now);
}

}  // namespace atp::joining
