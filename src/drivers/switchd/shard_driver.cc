// SPDX-License-Identifier: Apache-2.0
#include "switchd/shard_driver.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "net/local_route.h"
#include "net/udp_socket.h"
#include "observe/traced_transport.h"
#include "observe/tree_log.h"
#include "protocol/switch.h"

namespace atp::switchd {
namespace {

constexpr Duration publish_interval = std::chrono::milliseconds(100);
constexpr std::size_t batch_errors = 8;

endpoint::ShardMachineConfig machine_config(const SwitchNodeConfig& config, std::uint32_t number,
                                            ShardDriver::SharedTables shared, const net::Transport& socket,
                                            wire::TraceSink* trace) {
    return {.table = {.aggregators = aggregators_of_shard(config),
                      .lanes = config.lanes,
                      .jobs = config.jobs,
                      .ageing = config.ageing},
            .tree = {.parent = config.parent,
                     .jobs = config.jobs,
                     .channels = config.channels,
                     .room = std::move(shared.room),
                     .server_bytes = config.server_bytes / config.shards,
                     .hold = config.hold,
                     .secret = config.secret,
                     .pace = std::move(shared.pace),
                     .self = socket.local(),
                     .servers = config.servers,
                     .groups = config.groups,
                     .ticket_key = config.ticket_key,
                     .only = config.only},
            .clients = config.clients,
            .is_first = number == 0,
            .reaches_groups = socket.reaches_groups(),
            .trace = trace};
}

}  // namespace

Result<std::unique_ptr<net::Transport>> open_transport(const SwitchNodeConfig& config, std::uint32_t number) {
    net::UdpConfig udp = config.udp;
    if (number != 0) udp.local = udp.local.with_port(0);
    udp.reports_errors = true;
    if (config.open_transport) return config.open_transport(udp, number);
    auto socket = net::UdpSocket::open(udp);
    if (!socket) return tl::unexpected(socket.error());
    return *std::move(socket);
}

std::uint32_t aggregators_of_shard(const SwitchNodeConfig& config) {
    const std::uint64_t fit = config.memory_bytes / config.shards / protocol::aggregator_bytes(config.lanes);
    return static_cast<std::uint32_t>(std::min(fit, std::uint64_t{1} << 31U));
}

Result<std::unique_ptr<ShardDriver>> ShardDriver::open(const SwitchNodeConfig& config, std::uint32_t number,
                                                       net::EventLoop& loop, Dispatch dispatch, SharedTables shared) {
    auto socket = open_transport(config, number);
    if (!socket) return tl::unexpected(socket.error());
    wire::TraceSink* trace = nullptr;
    if (config.trace) socket = observe::trace_transport(*std::move(socket), config.trace, &trace);
    std::unique_ptr<ShardDriver> shard(
        new ShardDriver(config, number, loop, std::move(dispatch), std::move(shared), *std::move(socket), trace));
    loop.add(*shard);
    if (auto watched = loop.watch(*shard, shard->socket_->descriptor(), {}); !watched) {
        return tl::unexpected(watched.error());
    }
    return shard;
}

ShardDriver::ShardDriver(const SwitchNodeConfig& config, std::uint32_t number, net::EventLoop& loop, Dispatch dispatch,
                         SharedTables shared, std::unique_ptr<net::Transport> socket, wire::TraceSink* trace)
    : loop_(loop),
      dispatch_(std::move(dispatch)),
      log_(config.log),
      socket_(std::move(socket)),
      outbox_(*socket_, config.udp.send_packets),
      machine_(machine_config(config, number, std::move(shared), *socket_, trace)),
      datagrams_(endpoint::ShardMachine::most_batch) {
    publish();
}

ShardDriver::~ShardDriver() { loop_.remove(*this); }

void ShardDriver::handle_ready(int, net::Ready ready, Time now) {
    if (ready.failed) errors_due_ = true;
    if (ready.write && waits_) {
        resume(now);
    } else if (ready.read || ready.failed) {
        receive(now);
    }
}

// If the kernel accepts packets again, answers of servers go first. Datagrams that were read before do not make the
// socket readable, so receive() follows.
void ShardDriver::resume(Time now) {
    flush();
    if (outbox_.blocked()) return;
    machine_.handle_room(outbox_, now);
    receive(now);
}

void ShardDriver::receive(Time now) {
    for (int batch = 0; (batch < batches_per_round || socket_->has_more()) && !outbox_.blocked(); ++batch) {
        const auto count = socket_->receive(datagrams_);
        if (!count) {
            failure_ = count.error();
            loop_.stop();
            return;
        }
        if (*count == 0) return;
        changed_ = true;
        machine_.handle_batch(std::span(datagrams_).first(*count), outbox_, now);
        take_events();
        flush();
        if (socket_->drained()) return;
    }
}

void ShardDriver::receive_errors(Time now) {
    std::array<wire::SendError, batch_errors> errors;
    const std::size_t count = socket_->take_errors(errors);
    errors_due_ = count == errors.size();
    for (const wire::SendError& error : std::span(errors).first(count)) {
        machine_.handle_send_error(error, outbox_, now);
    }
    changed_ = changed_ || count != 0;
    take_events();
}

void ShardDriver::take_events() {
    while (const auto event = machine_.poll_event()) {
        switch (event->kind) {
            case endpoint::ShardEvent::Kind::message: dispatch_(*event, outbox_); break;
            case endpoint::ShardEvent::Kind::group_used:
                if (const auto from = net::local_address_towards(event->near)) {
                    socket_->reach_group(event->address, *from);
                }
                break;
            case endpoint::ShardEvent::Kind::group_unused: socket_->forget_group(event->address); break;
        }
    }
    while (const auto notice = machine_.poll_notice()) {
        if (log_ != nullptr) observe::write_notice(*log_, *notice);
    }
}

// While the kernel accepts no packets, arrivals wait in the receive buffer.
void ShardDriver::flush() {
    outbox_.flush();
    if (outbox_.blocked() == waits_) return;
    waits_ = outbox_.blocked();
    static_cast<void>(loop_.change(socket_->descriptor(), {.read = !waits_, .write = waits_}));
}

void ShardDriver::deliver(QueuedMessage queued_message) {
    if (mailbox_.put(std::move(queued_message))) loop_.wake();
}

void ShardDriver::handle_wake(Time now) {
    for (const QueuedMessage& queued_message : mailbox_.take_all()) {
        changed_ = true;
        machine_.handle_message(queued_message.bytes, queued_message.from, outbox_, now);
        take_events();
    }
}

void ShardDriver::handle_timeout(Time now) {
    if (now >= machine_.poll_timeout()) changed_ = true;  // members expire without a message
    machine_.handle_timeout(outbox_, now);
    take_events();
    if (now >= socket_->poll_timeout() && !outbox_.blocked()) receive(now);
    if (changed_ && now >= publish_at_) {
        changed_ = false;
        publish_at_ = now + publish_interval;
        publish();
    }
}

// Packets of the machine may have flushed the outbox since this driver did: the kernel may accept no more packets, or
// accept them again.
void ShardDriver::finish_round(Time now) {
    if (errors_due_) receive_errors(now);
    if (waits_ && !outbox_.blocked()) resume(now);
    if (!outbox_.blocked() && machine_.has_answers()) machine_.handle_room(outbox_, now);
    if (!outbox_.blocked() || !waits_) flush();
}

Time ShardDriver::poll_timeout() const {
    const Time publish = changed_ ? publish_at_ : never;
    return std::min({machine_.poll_timeout(), outbox_.blocked() ? never : socket_->poll_timeout(), publish});
}

}  // namespace atp::switchd
