// SPDX-License-Identifier: Apache-2.0
#include "host/switch_host.h"

#include "random/random.h"

namespace atp::host {
inline namespace ATP_VARIANT {
namespace {

constexpr std::uint64_t boot_stream = 0x6a04;

endpoint::ShardMachineConfig shard_of(const SwitchHostConfig& config) {
    Random random(config.boot, boot_stream);
    endpoint::ShardMachineConfig shard = config.shard;
    shard.passes_messages = true;
    shard.tree.secret = {random.next(), random.next()};
    return shard;
}

}  // namespace

SwitchHost::SwitchHost(const SwitchHostConfig& config)
    : node_({.id = config.boot, .parent = config.shard.tree.parent}),
      shard_(shard_of(config)),
      address_(config.address) {}

void SwitchHost::handle_batch(std::span<const wire::Datagram> batch, wire::Outbox& out, Time now) {
    shard_.handle_batch(batch, out, now);
    pass_messages(out, now);
}

void SwitchHost::handle_send_error(const wire::SendError& error, wire::Outbox& out, Time now) {
    shard_.handle_send_error(error, out, now);
    pass_messages(out, now);
}

void SwitchHost::handle_timeout(wire::Outbox& out, Time now) {
    shard_.handle_timeout(out, now);
    pass_messages(out, now);
}

// Control messages arrive at the node, which passes those of channels to the shard. Other events are for sockets.
void SwitchHost::pass_messages(wire::Outbox& out, Time now) {
    using endpoint::NodeTask;
    using endpoint::ShardEvent;
    while (const auto event = shard_.poll_event()) {
        if (event->kind != ShardEvent::Kind::message) continue;
        const NodeTask task = node_.handle_message(event->message, out, now);
        if (task.kind == NodeTask::Kind::deliver) shard_.handle_message(event->message, out, now);
        if (task.kind == NodeTask::Kind::take_report) node_.handle_report({}, out, now);
    }
}

}  // namespace ATP_VARIANT
}  // namespace atp::host
