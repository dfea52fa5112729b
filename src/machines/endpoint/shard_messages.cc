// SPDX-License-Identifier: Apache-2.0
// Control messages of a shard: those that arrive, and those that its tree sends.
#include <algorithm>
#include <memory>
#include <utility>

#include "control/tree_messages.h"
#include "endpoint/shard_machine.h"
#include "wire/control.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {
namespace {

// Others come from a parent, which answers.
bool is_of_client(std::span<const std::byte> message) {
    using wire::ControlType;
    const auto type = wire::control_type(message);
    return type != ControlType::joined && type != ControlType::refused && type != ControlType::retry;
}

}  // namespace

// A JOIN without a cookie is answered here, before anything is kept of it: anyone can send it, from any address.
void ShardMachine::take_message(const wire::Datagram& datagram, wire::Outbox& out, Time now) {
    if (is_of_client(datagram.bytes) && !gatekeeper_.admits(*datagram.from)) return;
    if (control::is_of_another_job(tree_, datagram.bytes)) {
        ++counters_.control_refused;
        return;
    }
    if (const auto retry = gatekeeper_.handle_join(datagram.bytes, *datagram.from, now)) {
        if (limit_.admit(*datagram.from, now)) send_message(*retry, *datagram.from, out, now);
        return;
    }
    constexpr std::size_t longest = wire::longest_message_bytes + wire::longest_code_bytes;
    const auto kept = datagram.bytes.first(std::min(datagram.bytes.size(), longest));
    ControlMessage message{.from = *datagram.from,
                           .ecn = datagram.ecn,
                           .bytes = {kept.begin(), kept.end()},
                           .length = datagram.bytes.size()};
    if (!config_.passes_messages) return handle_message(message, out, now);
    add_event({.kind = ShardEvent::Kind::message, .message = std::move(message)});
}

ControlClass ShardMachine::class_of(const ControlMessage& message) {
    const auto key = control::key_of_message(message.bytes);
    const control::Branch* const branch = key ? tree_.find(*key) : nullptr;
    if (branch != nullptr && branch->is_neighbour(message.from)) return ControlClass::neighbours;
    const bool joins = wire::control_type(message.bytes) == wire::ControlType::join;
    return joins ? ControlClass::newcomers : ControlClass::strangers;
}

void ShardMachine::handle_message(const ControlMessage& message, wire::Outbox& out, Time now) {
    const control::TreeReception reception =
        control::handle_tree_message(tree_, gatekeeper_, codes_, message.bytes, message.length, message.from, now);
    if (reception.retry) send_message(*reception.retry, message.from, out, now);
    if (!reception.understood) ++counters_.control_refused;
    drain_tree(out, now);
}

void ShardMachine::set_tenants(std::shared_ptr<const control::Tenants> tenants, wire::Outbox& out, Time now) {
    codes_.set_tenants(tenants);
    slices_.set_tenants(tenants);
    tree_.set_tenants(std::move(tenants), now);
    drain_tree(out, now);
}

void ShardMachine::set_hosts(control::HostLists hosts) {
    gatekeeper_.set_clients(hosts.clients);
    tree_.set_hosts(std::move(hosts));
}

void ShardMachine::send_message(const wire::JoiningMessage& message, const wire::Address& to, wire::Outbox& out,
                                Time now, std::uint32_t padded_bytes) {
    const std::span<std::byte> room = out.reserve(ATP_MAX_PACKET_BYTES);
    if (room.empty()) return;
    const std::size_t size = codes_.encode(message, to, gatekeeper_, room, padded_bytes, now);
    if (size != 0) out.commit(size, to, wire::Ecn::capable_0);
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
