// SPDX-License-Identifier: Apache-2.0
#include "switchd/shard_driver.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "net/udp_socket.h"
#include "wire/control.h"

namespace atp::switchd {
namespace {

constexpr std::size_t mailbox_messages = 1024;
constexpr Duration publish_interval = std::chrono::milliseconds(100);

std::uint8_t type_of(std::span<const std::byte> bytes) { return wire::load_u8(bytes.data() + ATP_OFFSET_TYPE); }
std::uint32_t job_of(std::span<const std::byte> bytes) { return wire::load_u32(bytes.data() + ATP_OFFSET_JOB); }
std::uint16_t channel_of(std::span<const std::byte> bytes) { return wire::load_u16(bytes.data() + ATP_OFFSET_CHANNEL); }

protocol::SwitchConfig switch_config(const SwitchNodeConfig& config) {
    return {.aggregators = aggregators_of_shard(config),
            .lanes = config.lanes,
            .jobs = config.jobs,
            .ageing = config.ageing};
}

control::JoinTreeConfig tree_config(const SwitchNodeConfig& config, const control::ChannelRules* other,
                                    std::shared_ptr<control::SwitchRoom> room) {
    return {.parent = config.parent,
            .serves_atp = config.serves_atp,
            .other = other,
            .jobs = config.jobs,
            .channels = config.channels,
            .room = std::move(room),
            .server_bytes = config.server_bytes / config.shards,
            .hold = config.hold};
}

Result<std::unique_ptr<net::Transport>> open_transport(const SwitchNodeConfig& config, std::uint32_t number) {
    net::UdpConfig udp = config.udp;
    if (number != 0) udp.local = udp.local.with_port(0);
    if (config.open_transport) return config.open_transport(udp, number);
    auto socket = net::UdpSocket::open(udp);
    if (!socket) return tl::unexpected(socket.error());
    return *std::move(socket);
}

}  // namespace

std::uint32_t aggregators_of_shard(const SwitchNodeConfig& config) {
    const std::uint64_t fit = config.memory_bytes / config.shards / protocol::aggregator_bytes(config.lanes);
    return static_cast<std::uint32_t>(std::min(fit, std::uint64_t{1} << 31U));
}

Result<std::unique_ptr<ShardDriver>> ShardDriver::open(const SwitchNodeConfig& config, std::uint32_t number,
                                                       net::EventLoop& loop, Dispatch dispatch,
                                                       std::shared_ptr<control::SwitchRoom> room) {
    auto socket = open_transport(config, number);
    if (!socket) return tl::unexpected(socket.error());
    std::unique_ptr<ShardDriver> shard(
        new ShardDriver(config, number, loop, std::move(dispatch), std::move(room), *std::move(socket)));
    loop.add(*shard);
    if (auto watched = loop.watch(*shard, shard->socket_->descriptor(), {}); !watched) {
        return tl::unexpected(watched.error());
    }
    return shard;
}

ShardDriver::ShardDriver(const SwitchNodeConfig& config, std::uint32_t number, net::EventLoop& loop, Dispatch dispatch,
                         std::shared_ptr<control::SwitchRoom> room, std::unique_ptr<net::Transport> socket)
    : config_(config),
      loop_(loop),
      dispatch_(std::move(dispatch)),
      socket_(std::move(socket)),
      switch_(switch_config(config)),
      other_(config.open_protocol ? config.open_protocol(number) : nullptr),
      tree_(tree_config(config, other_.get(), std::move(room))),
      datagrams_(batch_packets),
      scratch_(net::allocate_aligned((batch_packets + 1) * std::size_t{ATP_MAX_PACKET_BYTES})),
      packet_bytes_(ATP_MAX_PACKET_BYTES) {
    packet_buffers_.reserve(batch_packets);
    publish();
}

ShardDriver::~ShardDriver() { loop_.remove(*this); }

// ----------------------------------------------------------------------------------------------------------- Arrivals

void ShardDriver::handle_ready(int, net::Ready ready, Time now) {
    const bool resumes = ready.write && blocked_ && resume(now);
    if (ready.read || ready.failed || resumes) receive(now);
}

// The kernel accepts packets again: answers of servers go first. If it returns true, the caller must receive, because
// datagrams that were read before do not make the socket readable.
bool ShardDriver::resume(Time now) {
    flush();
    if (!blocked_) drain_servers(now);
    return !blocked_;
}

void ShardDriver::receive(Time now) {
    for (int batch = 0; (batch < batches_per_round || socket_->has_more()) && !blocked_; ++batch) {
        const auto count = socket_->receive(datagrams_);
        if (!count) {
            failure_ = count.error();
            loop_.stop();
            return;
        }
        if (*count == 0) return;
        changed_ = true;
        for (std::size_t i = 0; i < *count; ++i) take_datagram(datagrams_[i], now);
        process_batch(now);
        drain_servers(now);
        flush();
    }
}

// Packets of another protocol are handled one by one. Packets of ATP are handled in batches, which hide memory latency.
void ShardDriver::take_datagram(const wire::Datagram& datagram, Time now) {
    if (wire::control_type(datagram.bytes) || wire::foreign_version(datagram.bytes)) {
        dispatch_ ? dispatch_(datagram.bytes, *datagram.from, datagram.ecn)
                  : handle_control(datagram.bytes, *datagram.from, now);
    } else if (other_ != nullptr && other_->has_format(datagram.bytes)) {
        answer_by_protocol(datagram.bytes, *datagram.from);
    } else {
        add_packet(datagram.bytes, datagram.capacity, datagram.ecn == wire::Ecn::congested);
    }
}

// A FLUSH may grow into a gradient. Received datagrams are adjacent in memory and leave no room for it.
void ShardDriver::add_packet(std::span<std::byte> bytes, std::size_t capacity, bool congested) {
    if (bytes.size() == ATP_HEADER_BYTES && type_of(bytes) == ATP_TYPE_FLUSH) {
        std::byte* copy = scratch_.get() + packet_bytes_ * (1 + scratch_used_++);
        std::memcpy(copy, bytes.data(), bytes.size());
        bytes = {copy, bytes.size()};
        capacity = packet_bytes_;
        pass_to_racks(bytes);
    }
    packet_buffers_.push_back({.data = bytes.data(),
                               .size = static_cast<std::uint32_t>(bytes.size()),
                               .capacity = static_cast<std::uint32_t>(capacity),
                               .congested = congested,
                               .verdict = {}});
}

// For a FLUSH of a server on another host. This switch may absorb it, but a switch in the path to a rack's workers
// needs it as well.
void ShardDriver::pass_to_racks(std::span<const std::byte> flush) {
    const control::Branch* const branch = tree_.find(job_of(flush), channel_of(flush));
    const bool known = branch != nullptr && branch->terms.token == wire::load_u32(flush.data() + ATP_OFFSET_TOKEN);
    if (known) flush_racks(flush, *branch, wire::load_u32(flush.data() + ATP_OFFSET_BITMAP1));
}

void ShardDriver::process_batch(Time now) {
    switch_.handle_batch(packet_buffers_, now);
    for (const protocol::PacketBuffer& packet_buffer : packet_buffers_) {
        if (packet_buffer.verdict.route != protocol::Route::drop) forward(packet_buffer, now);
    }
    packet_buffers_.clear();
    scratch_used_ = 0;
}

void ShardDriver::answer_by_protocol(std::span<std::byte> bytes, const wire::Address& from) {
    const auto receivers = other_->handle_packet(bytes, from);
    bool again = false;
    for (std::uint32_t bits = receivers.children; bits != 0; bits &= bits - 1) {
        const control::Branch::Child& child = receivers.branch->children[static_cast<unsigned>(std::countr_zero(bits))];
        again = send(bytes, child.address, wire::Ecn::capable_0, again);
    }
}

// --------------------------------------------------------------------------------------------------------- Departures

void ShardDriver::forward(const protocol::PacketBuffer& packet_buffer, Time now) {
    const std::span<const std::byte> bytes(packet_buffer.data, packet_buffer.size);
    control::Branch* branch = tree_.find(job_of(bytes), channel_of(bytes));
    if (branch == nullptr) {
        ++counters_.unrouted;
    } else if (packet_buffer.verdict.route == protocol::Route::up) {
        forward_up(packet_buffer, *branch, now);
    } else {
        forward_down(bytes, packet_buffer.congested, *branch, packet_buffer.verdict);
    }
}

void ShardDriver::forward_up(const protocol::PacketBuffer& packet_buffer, control::Branch& branch, Time now) {
    if (!branch.hosts) {
        // Forward even if the tree above is incomplete: workers that are done have left, but a worker that missed the
        // last result still requests it.
        if (branch.up_data.family() == wire::Family::none) {
            ++counters_.unrouted;
            return;
        }
        // The gradient carries its congestion as a flag by now, so the network may mark its IP header again.
        send({packet_buffer.data, packet_buffer.size}, branch.up_data, wire::Ecn::capable_0, false);
        return;
    }
    const auto host = servers_.find(&branch);
    if (host == servers_.end()) {
        ++counters_.unrouted;
        return;
    }
    feed_server(*host->second, {packet_buffer.data, packet_buffer.size}, packet_buffer.congested, now);
    if (!host->second->queued && host->second->server.has_transmit()) {
        host->second->queued = true;
        busy_servers_.push_back(host->second.get());
        busy_branches_.push_back(&branch);
    }
}

void ShardDriver::feed_server(endpoint::HostedServer& host, std::span<std::byte> bytes, bool congested, Time now) {
    host.server.handle_packet(bytes, congested, now);
}

// Visits the children that receive a downward packet.
template <class Visit>
void ShardDriver::for_each_receiver(std::span<const std::byte> bytes, const control::Branch& branch,
                                    const protocol::Verdict& verdict, Visit&& visit) {
    const bool flush = type_of(bytes) == ATP_TYPE_FLUSH;
    if (branch.level == ATP_LEVELS) {
        branch.for_each_child(visit);
    } else if (verdict.worker != ATP_WORKER_ALL) {
        if (const control::Branch::Child* const child = branch.child_to(verdict.worker)) visit(*child);
    } else if (!flush) {
        branch.for_each_child(branch.level == 0 ? branch.mask : branch.mask & verdict.units, visit);
    } else if (branch.level == 1) {
        // Workers ignore a FLUSH, so only the switches of racks receive it.
        branch.for_each_child(branch.mask & verdict.units, [&](const control::Branch::Child& child) {
            if (!child.unit.direct && branch.racks[child.unit.unit] == nullptr) visit(child);
        });
    }
}

// The switch of a rack in the path has no address. The FLUSH is therefore sent to one of the rack's workers: the switch
// intercepts it and returns its partial sum.
void ShardDriver::flush_racks(std::span<const std::byte> flush, const control::Branch& branch, std::uint32_t units) {
    for (units &= branch.mask; units != 0; units &= units - 1) {
        const control::Branch::Rack* const rack = branch.racks[static_cast<unsigned>(std::countr_zero(units))].get();
        if (rack == nullptr) continue;
        const control::Branch::Child& first = rack->members[static_cast<unsigned>(std::countr_zero(rack->present))];
        send_copy(flush, first.address, wire::Ecn::capable_0);
    }
}

// Results for all children go to the group if all receive it.
bool ShardDriver::goes_to_group(std::span<const std::byte> bytes, const control::Branch& branch,
                                const protocol::Verdict& verdict) const {
    return branch.by_group && socket_->reaches_groups() && type_of(bytes) == ATP_TYPE_ACK &&
           verdict.worker == ATP_WORKER_ALL;
}

void ShardDriver::forward_down(std::span<const std::byte> bytes, bool congested, const control::Branch& branch,
                               const protocol::Verdict& verdict) {
    // The mark of the downward path stays in the IP header, which only workers read.
    const wire::Ecn ecn = congested ? wire::Ecn::congested : wire::Ecn::capable_0;
    if (goes_to_group(bytes, branch, verdict)) {
        ++counters_.grouped;
        send(bytes, branch.group, ecn, false);
        return;
    }
    bool again = false;
    for_each_receiver(bytes, branch, verdict,
                      [&](const control::Branch::Child& child) { again = send(bytes, child.address, ecn, again); });
}

void ShardDriver::drain_servers(Time now) {
    while (!busy_servers_.empty()) {
        endpoint::HostedServer& host = *busy_servers_.back();
        if (!drain(host, now)) return;
        host.queued = false;
        busy_servers_.pop_back();
        busy_branches_.pop_back();
    }
}

// Room for the packet and for one copy per child; empty if the send queue is full.
std::span<std::byte> ShardDriver::room_for_copies(const control::Branch& branch) {
    const bool crowded = socket_->waiting() + branch.receivers > config_.udp.send_packets;
    const std::span<std::byte> room = crowded ? std::span<std::byte>() : socket_->reserve(packet_bytes_);
    if (!room.empty()) return room;
    flush();
    return socket_->reserve(packet_bytes_);
}

// Packets of a server pass the aggregators of its own switch. False: the send queue is full.
bool ShardDriver::drain(endpoint::HostedServer& host, Time now) {
    const control::Branch& branch = *busy_branches_.back();
    while (host.server.has_transmit()) {
        const std::span<std::byte> buffer = room_for_copies(branch);
        if (buffer.empty()) return false;
        const auto transmit = host.server.poll_transmit(buffer);
        if (!transmit) return true;
        protocol::PacketBuffer packet_buffer{
            .data = buffer.data(),
            .size = static_cast<std::uint32_t>(transmit->size),
            .capacity = static_cast<std::uint32_t>(buffer.size()),
            .congested = false,
            .verdict = {.route = protocol::Route::down, .worker = transmit->worker, .units = transmit->units}};
        std::array<std::byte, ATP_HEADER_BYTES> flush{};
        const bool is_flush = type_of(buffer) == ATP_TYPE_FLUSH;
        if (is_flush) std::memcpy(flush.data(), buffer.data(), flush.size());
        switch_.handle_packet(packet_buffer, now);
        if (packet_buffer.verdict.route == protocol::Route::up) {
            feed_server(host, {packet_buffer.data, packet_buffer.size}, false, now);
        } else if (packet_buffer.verdict.route == protocol::Route::down) {
            answer(packet_buffer, branch);
        } else if (is_flush && !branch.has_racks) {
            pass_flush({packet_buffer.data, packet_buffer.size}, branch);
        }
        if (is_flush) flush_racks(flush, branch, transmit->units);
    }
    return true;
}

// Passes a FLUSH to a child, since a switch in the path, which has no address, may hold the partial sum. That switch
// answers the FLUSH. Otherwise the receiver ignores it.
void ShardDriver::pass_flush(std::span<const std::byte> bytes, const control::Branch& branch) {
    if (branch.present == 0) return;
    const wire::Address& to = branch.children[static_cast<unsigned>(std::countr_zero(branch.present))].address;
    socket_->commit(bytes.size(), to, wire::Ecn::capable_0);
}

// Sends a hosted server's packet, which is in the room that was reserved for it.
void ShardDriver::answer(const protocol::PacketBuffer& packet_buffer, const control::Branch& branch) {
    const std::span<const std::byte> bytes(packet_buffer.data, packet_buffer.size);
    if (goes_to_group(bytes, branch, packet_buffer.verdict)) {
        ++counters_.grouped;
        socket_->commit(packet_buffer.size, branch.group, wire::Ecn::capable_0);
        return;
    }
    bool first = true;
    for_each_receiver(bytes, branch, packet_buffer.verdict, [&](const control::Branch::Child& child) {
        if (std::exchange(first, false)) {
            socket_->commit(packet_buffer.size, child.address, wire::Ecn::capable_0);
        } else if (!socket_->repeat(child.address)) {
            ++counters_.unrouted;
        }
    });
}

// `bytes` must stay unchanged until the next flush(). `again`: the previous call sent the same bytes to another
// receiver. False: the packet was dropped, and the socket's last packet is another one.
bool ShardDriver::send(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn, bool again) {
    // Copies share the bytes of the first packet. If the queue is full, it is flushed first, and the bytes stay valid.
    const bool taken = again && socket_->waiting() != 0 ? socket_->repeat(to) : socket_->borrow(bytes, to, ecn);
    if (taken) return true;
    flush();
    if (socket_->borrow(bytes, to, ecn)) return true;
    ++counters_.unrouted;
    return false;
}

void ShardDriver::send_copy(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) {
    std::span<std::byte> room = socket_->reserve(bytes.size());
    if (room.empty()) {
        flush();
        room = socket_->reserve(bytes.size());
        if (room.empty()) {
            ++counters_.unrouted;
            return;
        }
    }
    std::memcpy(room.data(), bytes.data(), bytes.size());
    socket_->commit(bytes.size(), to, ecn);
}

void ShardDriver::flush() {
    const bool waits = socket_->flush().waiting != 0;
    if (waits == blocked_) return;
    blocked_ = waits;
    // While the kernel accepts no packets, arrivals wait in the receive buffer.
    static_cast<void>(loop_.change(socket_->descriptor(), {.read = !waits, .write = waits}));
}

// ---------------------------------------------------------------------------------------------------------- Mailboxes

void ShardDriver::deliver(QueuedMessage queued_message) {
    {
        const std::scoped_lock lock(mutex_);
        if (queued_messages_.size() >= mailbox_messages) {
            ++queued_messages_lost_;
            return;
        }
        queued_messages_.push_back(std::move(queued_message));
    }
    loop_.wake();
}

void ShardDriver::post(QueuedMessage queued_message) {
    {
        const std::scoped_lock lock(mutex_);
        if (posts_.size() >= mailbox_messages) {
            ++queued_messages_lost_;
            return;
        }
        posts_.push_back(std::move(queued_message));
    }
    loop_.wake();
}

void ShardDriver::handle_wake(Time now) { read_queued_messages(now); }

void ShardDriver::read_queued_messages(Time now) {
    std::vector<QueuedMessage> queued_messages;
    std::vector<QueuedMessage> posts;
    {
        const std::scoped_lock lock(mutex_);
        queued_messages.swap(queued_messages_);
        posts.swap(posts_);
    }
    for (const QueuedMessage& queued_message : queued_messages)
        handle_control(queued_message.bytes, queued_message.from, now);
    for (const QueuedMessage& queued_message : posts)
        send_copy(queued_message.bytes, queued_message.from, queued_message.ecn);
}

void ShardDriver::handle_timeout(Time now) {
    if (now >= tree_.poll_timeout()) changed_ = true;  // members expire without a message
    tree_.handle_timeout(now);
    drain_tree(now);
    if (now >= socket_->poll_timeout() && !blocked_) receive(now);
    drain_servers(now);
    if (changed_ && now >= publish_at_) {
        changed_ = false;
        publish_at_ = now + publish_interval;
        publish();
    }
}

void ShardDriver::finish_round(Time) {
    if (!blocked_) flush();
}

Time ShardDriver::poll_timeout() const {
    const Time publish = changed_ ? publish_at_ : never;
    return std::min({tree_.poll_timeout(), blocked_ ? never : socket_->poll_timeout(), publish});
}

}  // namespace atp::switchd
