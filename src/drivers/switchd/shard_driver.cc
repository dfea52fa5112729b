// SPDX-License-Identifier: Apache-2.0
#include "switchd/shard_driver.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "net/clock.h"
#include "net/local_route.h"
#include "net/udp_socket.h"
#include "observe/traced_transport.h"
#include "observe/tree_log.h"
#include "protocol/switch.h"

namespace atp::switchd {
namespace {

constexpr Duration publish_interval = std::chrono::milliseconds(100);
constexpr std::size_t batch_errors = 8;

endpoint::ShardMachineConfig machine_config(const SwitchNodeConfig& config, ShardDriver::SharedTables shared,
                                            const net::Transport& socket, wire::TraceSink* trace) {
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
                     .asks_path = true,
                     .ticket_key = config.ticket_key,
                     .tenants = config.tenants,
                     .parent_key = config.parent_key,
                     .trees = config.shards,
                     .only = config.only},
            .clients = config.clients,
            .passes_messages = true,
            .reaches_groups = socket.reaches_groups(),
            .indices = config.indices.get(),
            .trace = trace};
}

}  // namespace

Result<std::unique_ptr<net::Transport>> open_transport(const SwitchNodeConfig& config, std::uint32_t number) {
    net::UdpConfig udp = config.udp;
    if (number != 0) {
        udp.local = udp.local.with_port(0);
        udp.inherited = -1;
    }
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
        new ShardDriver(config, loop, std::move(dispatch), std::move(shared), *std::move(socket), trace));
    loop.add(*shard);
    if (auto watched = loop.watch(*shard, shard->socket_->descriptor(), {}); !watched) {
        return tl::unexpected(watched.error());
    }
    return shard;
}

ShardDriver::ShardDriver(const SwitchNodeConfig& config, net::EventLoop& loop, Dispatch dispatch, SharedTables shared,
                         std::unique_ptr<net::Transport> socket, wire::TraceSink* trace)
    : loop_(loop),
      dispatch_(std::move(dispatch)),
      log_(config.log),
      socket_(std::move(socket)),
      outbox_(*socket_, config.udp.send_packets),
      machine_(machine_config(config, std::move(shared), *socket_, trace)),
      datagrams_(endpoint::ShardMachine::most_batch),
      control_(config.secret) {
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
        take_events(now);
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
    take_events(now);
}

void ShardDriver::take_events(Time now) {
    while (auto event = machine_.poll_event()) {
        switch (event->kind) {
            case endpoint::ShardEvent::Kind::message:
                if (dispatch_) {
                    dispatch_(std::move(event->message), outbox_, now);
                } else {
                    enqueue(std::move(event->message), now);
                }
                break;
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

void ShardDriver::deliver(endpoint::ControlMessage message) {
    if (mailbox_.put(std::move(message))) loop_.wake();
}

void ShardDriver::enqueue(endpoint::ControlMessage message, Time now) {
    const endpoint::ControlClass of = machine_.class_of(message);
    control_.put(of, std::move(message), now);
}

void ShardDriver::set_tenants(std::shared_ptr<const control::Tenants> tenants) {
    {
        const std::scoped_lock lock(mutex_);
        new_tenants_ = std::move(tenants);
    }
    loop_.wake();
}

void ShardDriver::set_hosts(control::HostLists hosts) {
    {
        const std::scoped_lock lock(mutex_);
        new_hosts_ = std::move(hosts);
    }
    loop_.wake();
}

void ShardDriver::handle_wake(Time now) {
    std::optional<std::shared_ptr<const control::Tenants>> tenants;
    std::optional<control::HostLists> hosts;
    {
        const std::scoped_lock lock(mutex_);
        tenants = std::exchange(new_tenants_, std::nullopt);
        hosts = std::exchange(new_hosts_, std::nullopt);
    }
    if (hosts) machine_.set_hosts(*std::move(hosts));
    if (tenants) {
        machine_.set_tenants(*std::move(tenants), outbox_, now);
        take_events(now);
        changed_ = true;
    }
    mailbox_.take_all([&](endpoint::ControlMessage message) { enqueue(std::move(message), now); });
}

// What is left waits for the next round, so that packets do not.
void ShardDriver::handle_control() {
    const Time begin = net::now();
    for (Time at = begin; at - begin < control_per_round;) {
        const auto message = control_.next(at);
        if (!message) return;
        changed_ = true;
        machine_.handle_message(*message, outbox_, at);
        take_events(at);
        const Time after = net::now();
        control_.charge(after - at, after);
        at = after;
    }
}

void ShardDriver::handle_timeout(Time now) {
    if (now >= machine_.poll_timeout()) {
        changed_ = true;  // members expire without a message
        machine_.handle_timeout(outbox_, now);
        take_events(now);
    }
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
    if (control_.poll_timeout() <= now) handle_control();
    if (errors_due_) receive_errors(now);
    if (waits_ && !outbox_.blocked()) resume(now);
    if (!outbox_.blocked() && machine_.has_answers()) machine_.handle_room(outbox_, now);
    if (!outbox_.blocked() || !waits_) flush();
}

Time ShardDriver::poll_timeout() const {
    const Time publish = changed_ ? publish_at_ : never;
    return std::min({machine_.poll_timeout(), outbox_.blocked() ? never : socket_->poll_timeout(), publish,
                     control_.poll_timeout()});
}

}  // namespace atp::switchd
