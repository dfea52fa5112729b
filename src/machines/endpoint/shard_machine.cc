// SPDX-License-Identifier: Apache-2.0
#include "endpoint/shard_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/units.h"
#include "endpoint/branch_receivers.h"
#include "endpoint/routing.h"
#include "protocol/breaks.h"
#include "protocol/switch_event.h"
#include "wire/control.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {
namespace {

std::uint8_t type_of(const std::byte* packet) { return wire::load_u8(packet + ATP_OFFSET_TYPE); }
control::ChannelKey key_of(const std::byte* packet) {
    return {wire::load_u32(packet + ATP_OFFSET_JOB), wire::load_u64(packet + ATP_OFFSET_TOKEN),
            wire::load_u16(packet + ATP_OFFSET_CHANNEL)};
}
control::ChannelKey key_of(const control::Branch& branch) { return control::key_of(branch.terms); }

std::span<std::byte> bytes_of(const protocol::PacketBuffer& packet) { return {packet.data, packet.size}; }

Downward downward_of(const protocol::PacketBuffer& packet) {
    return {.type = type_of(packet.data),
            .worker = packet.verdict.worker,
            .units = packet.verdict.units,
            .except = only_sender_of(bytes_of(packet))};
}

// Anybody may listen to the group: a token that is read there would count everywhere else.
void hide_token(const protocol::PacketBuffer& packet, const control::Branch& branch) {
    if (!ATP_BREAK(token_to_group)) wire::store_u64(packet.data + ATP_OFFSET_TOKEN, branch.group_number);
}

template <class Child>
const Child& lowest(const std::array<Child, ATP_BITMAP_BITS>& children, std::uint32_t bits) {
    return children[static_cast<unsigned>(std::countr_zero(bits))];
}

}  // namespace

ShardMachine::ShardMachine(const ShardMachineConfig& config)
    : config_(config),
      switch_(config.table),
      codes_({.tenants = config.tree.tenants,
              .parent_key = config.tree.parent_key,
              .secret = config.tree.secret,
              .hold = config.tree.hold}),
      gatekeeper_(config.tree.secret, config.clients, codes_.introduction(), codes_.cookie_period()),
      limit_(config.tree.secret),
      tree_(config.tree),
      slices_({.aggregators = config.table.aggregators, .tables = config.tree.trees, .change = config.table.ageing}),
      acks_(config.ack_hold),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(most_batch * ATP_MAX_PACKET_BYTES)) {
    packets_.reserve(most_batch);
    slices_.set_tenants(config.tree.tenants);
}

// ----------------------------------------------------------------------------------------------------------- Arrivals

// Packets are handled in batches, which hide memory latency.
void ShardMachine::handle_batch(std::span<const wire::Datagram> batch, wire::Outbox& out, Time now) {
    for (const wire::Datagram& datagram : batch) take_datagram(datagram, out, now);
    process_batch(out, now);
    handle_room(out, now);
}

void ShardMachine::handle_room(wire::Outbox& out, Time now) {
    drain_servers(out, now);
    transmit_acks(out, now);
}

void ShardMachine::take_datagram(const wire::Datagram& datagram, wire::Outbox& out, Time now) {
    if (wire::control_type(datagram.bytes) || wire::foreign_version(datagram.bytes)) {
        take_message(datagram, out, now);
    } else {
        add_packet(datagram, out);
    }
}

// A FLUSH may grow into a gradient. Received datagrams are adjacent in memory and leave no room for it.
void ShardMachine::add_packet(const wire::Datagram& datagram, wire::Outbox& out) {
    std::span<std::byte> bytes = datagram.bytes;
    std::size_t capacity = datagram.capacity;
    const bool stranger = is_stranger(bytes, *datagram.from);
    if (bytes.size() == ATP_HEADER_BYTES && type_of(bytes.data()) == ATP_TYPE_FLUSH && scratch_used_ < most_batch) {
        std::byte* const copy = scratch_.get() + ATP_MAX_PACKET_BYTES * scratch_used_++;
        std::memcpy(copy, bytes.data(), bytes.size());
        bytes = {copy, bytes.size()};
        capacity = ATP_MAX_PACKET_BYTES;
        if (!stranger) pass_to_racks(bytes, out);
    }
    packets_.push_back({.data = bytes.data(),
                        .size = static_cast<std::uint32_t>(bytes.size()),
                        .capacity = static_cast<std::uint32_t>(capacity),
                        .congested = datagram.ecn == wire::Ecn::congested,
                        .is_stranger = stranger,
                        .verdict = {}});
}

// Who has the token must also be the neighbour, and the channel complete: before, its members send nothing. With a
// smaller window, each fragment would take the aggregator of the one before.
bool ShardMachine::is_stranger(std::span<const std::byte> packet, const wire::Address& from) {
    if (packet.size() < ATP_HEADER_BYTES) return false;  // no packet of a job
    const control::Branch* const branch = tree_.find(key_of(packet.data()));
    if (branch == nullptr || !branch->was_complete()) return true;
    const bool has_window = wire::load_u8(packet.data() + ATP_OFFSET_WINDOW) == branch->terms.window_log2;
    return !has_window || !comes_from_neighbour(packet, *branch, from);
}

// For a FLUSH of a server on another host. This switch may absorb it, but a switch in the path to a rack's workers
// needs it as well.
void ShardMachine::pass_to_racks(std::span<const std::byte> flush, wire::Outbox& out) {
    const control::Branch* const branch = tree_.find(key_of(flush.data()));
    if (branch != nullptr) flush_racks(flush, *branch, wire::load_u32(flush.data() + ATP_OFFSET_BITMAP1), out);
}

// The switch of a rack in the path has no address. The FLUSH is therefore sent to one of the rack's workers: the switch
// intercepts it and returns its partial sum.
void ShardMachine::flush_racks(std::span<const std::byte> flush, const control::Branch& branch, std::uint32_t units,
                               wire::Outbox& out) {
    for (units &= branch.mask; units != 0; units &= units - 1) {
        const control::Branch::Rack* const rack = branch.racks[static_cast<unsigned>(std::countr_zero(units))].get();
        if (rack != nullptr) send_copy(flush, lowest(rack->members, rack->present).address, out);
    }
}

// --------------------------------------------------------------------------------------------------------- Departures

void ShardMachine::process_batch(wire::Outbox& out, Time now) {
    switch_.handle_batch(packets_, now);
    if (config_.trace != nullptr) {
        for (const protocol::PacketBuffer& packet : packets_) trace(packet, now);
    }
    for (const protocol::PacketBuffer& packet : packets_) {
        if (packet.verdict.route != protocol::Route::drop) forward(packet, out, now);
    }
    packets_.clear();
    scratch_used_ = 0;
}

void ShardMachine::trace(const protocol::PacketBuffer& packet, Time now) {
    const bool drops = packet.verdict.route == protocol::Route::drop;
    config_.trace->packet(now, protocol::trace_event(packet.verdict.event, drops), bytes_of(packet), nullptr, false);
}

void ShardMachine::forward(const protocol::PacketBuffer& packet, wire::Outbox& out, Time now) {
    control::Branch* const branch = tree_.find(key_of(packet.data));
    if (branch == nullptr) {
        ++counters_.unrouted;
    } else if (packet.verdict.route == protocol::Route::up) {
        if (packet.verdict.event == ATP_EVENT_COMPLETED) {
            branch->pace.handle_completed(packet.verdict.completed_by,
                                          std::chrono::microseconds(packet.verdict.alone_us), now);
        }
        forward_up(packet, *branch, out, now);
    } else {
        note_result(packet, *branch, now);
        forward_down(packet, *branch, out, now);
    }
}

// A job that gets results is not ended for others.
void ShardMachine::note_result(const protocol::PacketBuffer& packet, control::Branch& branch, Time now) {
    if (type_of(packet.data) == ATP_TYPE_ACK) branch.active_at = now;
}

void ShardMachine::forward_up(const protocol::PacketBuffer& packet, control::Branch& branch, wire::Outbox& out,
                              Time now) {
    if (!branch.hosts) {
        // Forward even if the tree above is incomplete: workers that are done have left, but a worker that missed the
        // last result still requests it.
        if (branch.up_data.family() == wire::Family::none) {
            ++counters_.unrouted;
            return;
        }
        // The gradient carries its congestion as a flag by now, so the network may mark its IP header again.
        send(bytes_of(packet), branch.up_data, wire::Ecn::capable_0, false, out);
        return;
    }
    const auto found = servers_.find(key_of(branch));
    if (found == servers_.end()) {
        ++counters_.unrouted;
        return;
    }
    HostedServer& host = *found->second;
    host.server.handle_packet(bytes_of(packet), packet.congested, now);
    if (host.queued || !host.server.has_transmit()) return;
    host.queued = true;
    busy_.push_back({.key = found->first, .host = &host, .branch = &branch});
}

// Results for all children go out once if all receive them.
bool ShardMachine::goes_to_group(const protocol::PacketBuffer& packet, const control::Branch& branch) const {
    const bool once = branch.by_group || (ATP_BREAK(once_though_asked) && branch.asks_path &&
                                          branch.once_to.family() != wire::Family::none);
    if (!once || type_of(packet.data) != ATP_TYPE_ACK || packet.verdict.worker != ATP_WORKER_ALL) return false;
    return branch.asks_path ? may_be_copied(bytes_of(packet)) : config_.reaches_groups;
}

void ShardMachine::forward_down(const protocol::PacketBuffer& packet, const control::Branch& branch, wire::Outbox& out,
                                Time now) {
    // The mark of the downward path stays in the IP header, which only workers read.
    const wire::Ecn ecn = packet.congested ? wire::Ecn::congested : wire::Ecn::capable_0;
    if (goes_to_group(packet, branch)) {
        ++counters_.grouped;
        hide_token(packet, branch);
        send(bytes_of(packet), branch.once_to, ecn, false, out);
        return;
    }
    if (gather(packet, branch, out, now)) return;
    bool again = false;
    for_each_receiver(downward_of(packet), BranchReceivers(branch), [&](const control::Branch::Child& child) {
        again = send(bytes_of(packet), child.address, ecn, again, out);
    });
}

// `bytes` must stay unchanged until the outbox is flushed. `again`: the previous call sent the same bytes to another
// receiver. False: the packet was dropped, and the last packet of the outbox is another one.
bool ShardMachine::send(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn, bool again,
                        wire::Outbox& out) {
    if (again && out.repeat(to)) return true;
    if (out.borrow(bytes, to, ecn)) return true;
    ++counters_.unrouted;
    return false;
}

void ShardMachine::send_copy(std::span<const std::byte> bytes, const wire::Address& to, wire::Outbox& out) {
    const std::span<std::byte> room = out.reserve(bytes.size());
    if (room.empty()) {
        ++counters_.unrouted;
        return;
    }
    std::memcpy(room.data(), bytes.data(), bytes.size());
    out.commit(bytes.size(), to, wire::Ecn::capable_0);
}

// ------------------------------------------------------------------------------------------------------------ Servers

void ShardMachine::drain_servers(wire::Outbox& out, Time now) {
    while (!busy_.empty()) {
        if (!drain(busy_.back(), out, now)) return;
        busy_.back().host->queued = false;
        busy_.pop_back();
    }
}

// Packets of a server pass the aggregators of its own switch. False: the outbox has no room.
bool ShardMachine::drain(const BusyServer& busy, wire::Outbox& out, Time now) {
    control::Branch& branch = *busy.branch;
    protocol::Server& server = busy.host->server;
    while (server.has_transmit()) {
        out.expect(std::max(branch.receivers, 1U));
        const std::span<std::byte> buffer = out.reserve(ATP_MAX_PACKET_BYTES);
        if (buffer.empty()) return false;
        const auto transmit = server.poll_transmit(buffer);
        if (!transmit) return true;
        protocol::PacketBuffer packet{
            .data = buffer.data(),
            .size = static_cast<std::uint32_t>(transmit->size),
            .capacity = static_cast<std::uint32_t>(buffer.size()),
            .congested = false,
            .verdict = {.route = protocol::Route::down, .worker = transmit->worker, .units = transmit->units}};
        std::array<std::byte, ATP_HEADER_BYTES> flush{};
        const bool is_flush = type_of(buffer.data()) == ATP_TYPE_FLUSH;
        if (is_flush) std::memcpy(flush.data(), buffer.data(), flush.size());
        switch_.handle_packet(packet, now);
        if (config_.trace != nullptr) trace(packet, now);
        if (packet.verdict.route == protocol::Route::up) {
            server.handle_packet(bytes_of(packet), false, now);
        } else if (packet.verdict.route == protocol::Route::down) {
            note_result(packet, branch, now);
            if (!gather(packet, branch, out, now)) answer(packet, branch, out);
        } else if (is_flush && !branch.has_racks && branch.present != 0) {
            // A switch in the path, which has no address, may hold the partial sum. It answers the FLUSH. Otherwise the
            // receiver ignores it.
            out.commit(packet.size, lowest(branch.children, branch.present).address, wire::Ecn::capable_0);
        }
        if (is_flush) flush_racks(flush, branch, transmit->units, out);
    }
    return true;
}

// Sends a hosted server's packet, which is in the room that was reserved for it.
void ShardMachine::answer(const protocol::PacketBuffer& packet, const control::Branch& branch, wire::Outbox& out) {
    if (goes_to_group(packet, branch)) {
        ++counters_.grouped;
        hide_token(packet, branch);
        out.commit(packet.size, branch.once_to, wire::Ecn::capable_0);
        return;
    }
    bool first = true;
    for_each_receiver(downward_of(packet), BranchReceivers(branch), [&](const control::Branch::Child& child) {
        if (std::exchange(first, false)) {
            out.commit(packet.size, child.address, wire::Ecn::capable_0);
        } else if (!out.repeat(child.address)) {
            ++counters_.unrouted;
        }
    });
}

// Results for a group go to all at once, so nothing is gathered for it.
bool ShardMachine::gather(const protocol::PacketBuffer& packet, const control::Branch& branch, wire::Outbox& out,
                          Time now) {
    if (goes_to_group(packet, branch) || !acks_.take(packet, branch, switch_, now)) return false;
    if (acks_.is_full()) transmit_acks(out, now);
    return true;
}

void ShardMachine::transmit_acks(wire::Outbox& out, Time now) {
    acks_.transmit(out, now, [this](const control::ChannelKey& key) {
        const control::Branch* const branch = tree_.find(key);
        const protocol::Server* const server = branch == nullptr ? nullptr : server_of(*branch);
        return AckGatherer::Channel{.branch = branch, .expects_more = server != nullptr && server->expects_more()};
    });
}

const protocol::Server* ShardMachine::server_of(const control::Branch& branch) const {
    const auto found = servers_.find(key_of(branch));
    return found == servers_.end() ? nullptr : &found->second->server;
}

// --------------------------------------------------------------------------------------------------------------- Tree

void ShardMachine::handle_send_error(const wire::SendError& error, wire::Outbox& out, Time now) {
    tree_.handle_send_error(error, now);
    drain_tree(out, now);
}

void ShardMachine::handle_timeout(wire::Outbox& out, Time now) {
    tree_.handle_timeout(now);
    drain_tree(out, now);
    handle_room(out, now);
}

// If there is no room, the message is lost; members repeat control messages.
void ShardMachine::drain_tree(wire::Outbox& out, Time now) {
    while (const auto event = tree_.poll_event()) handle_event(*event, now);
    slices_.handle_timeout(*this, now);
    while (auto transmit = tree_.poll_transmit()) {
        // The routes to members and to their group are equal, and may change while a job runs.
        if (transmit->to.is_multicast()) {
            add_event({.kind = ShardEvent::Kind::group_used, .address = transmit->to, .near = transmit->near});
        }
        send_message(transmit->message, transmit->to, out, now, transmit->padded_bytes);
    }
}

void ShardMachine::handle_event(const control::TreeEvent& event, Time now) {
    switch (event.kind) {
        case control::TreeEvent::Kind::admitted:
            static_cast<void>(switch_.admit(event.job, event.token, event.level));
            if (const control::Branch* branch = tree_.find(control::key_of(event)))
                slices_.add({event.job, event.token}, branch->owner.tenant);
            break;
        case control::TreeEvent::Kind::opened:
            if (const control::Branch* branch = tree_.find(control::key_of(event))) open_server(*branch);
            break;
        case control::TreeEvent::Kind::closed: close_channel(event, now); break;
    }
}

void ShardMachine::set_slice(const control::JobKey& job, const atp_range& slice, std::uint32_t weight) {
    switch_.set_slice(job.job, job.token, slice, weight);
}

void ShardMachine::open_server(const control::Branch& branch) {
    const wire::ChannelTerms terms = branch.terms;
    if (auto host = host_server(branch, tree_.memory(), config_.indices)) {
        servers_[key_of(branch)] = std::move(host);
        tree_.opened(key_of(branch));
        return;
    }
    tree_.could_not_open(
        key_of(branch),
        // errors.md, refused: the host of the switch has no memory left for this job's server
        fmt::format("no memory for another parameter server of {} MB: use a smaller window or fewer lanes",
                    megabytes(control::server_bytes_of(terms))));
}

// After a tree was restored: it names the channels whose servers this shard hosts.
void ShardMachine::match_servers() {
    std::erase_if(servers_, [this](const auto& entry) {
        const control::Branch* const branch = tree_.find(entry.first);
        return branch == nullptr || !branch->opened;
    });
    tree_.for_each([this](const control::Branch& branch) {
        if (!branch.opened || servers_.contains(key_of(branch))) return;
        if (auto host = host_server(branch, tree_.memory(), config_.indices))
            servers_[key_of(branch)] = std::move(host);
    });
}

void ShardMachine::close_channel(const control::TreeEvent& event, Time now) {
    const control::ChannelKey key = control::key_of(event);
    if (event.last_of_job) {
        switch_.dismiss(event.job, event.token);
        slices_.remove({event.job, event.token}, now);
    }
    std::erase_if(busy_, [&](const BusyServer& busy) { return busy.key == key; });
    servers_.erase(key);
    acks_.close(key);
    if (event.group.family() == wire::Family::none) return;
    add_event({.kind = ShardEvent::Kind::group_unused, .message = {}, .address = event.group, .near = {}});
}

// ------------------------------------------------------------------------------------------------------------- Events

void ShardMachine::add_event(ShardEvent event) {
    if (event.kind != ShardEvent::Kind::message || events_.size() < most_events) {
        events_.push_back(std::move(event));
    } else {
        ++counters_.events_lost;
    }
}

std::optional<ShardEvent> ShardMachine::poll_event() {
    if (events_.empty()) return std::nullopt;
    ShardEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
