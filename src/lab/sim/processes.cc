// SPDX-License-Identifier: Apache-2.0
#include "sim/processes.h"

#include <netinet/in.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "control/branch.h"
#include "control/group_range.h"
#include "random/random.h"
#include "sim/truth.h"
#include "wire/bytes.h"
#include "wire/control.h"
#include "wire/trace.h"

namespace atp::sim {
namespace {

constexpr std::uint64_t boot_stream = 0xb007;
constexpr std::uint16_t first_port = 4790;
constexpr std::uint32_t first_host = 0x0A00'0001;   // 10.0.0.1
constexpr std::uint32_t first_group = 0xEF00'0001;  // 239.0.0.1
// A switch of the product handles packets in batches, and gathers ACKs at least for the length of one.
constexpr Duration usual_batch_time = std::chrono::microseconds(1);

wire::Address address_at(std::uint32_t host, std::size_t port) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(first_port + port));
    v4.sin_addr.s_addr = htonl(host);
    sockaddr bytes{};
    static_assert(sizeof v4 == sizeof bytes);
    std::memcpy(&bytes, &v4, sizeof v4);
    return wire::Address::from(&bytes, sizeof v4);
}

// Types of control messages follow those of packets.
bool is_control(const wire::Datagram& datagram) {
    return datagram.bytes.size() > ATP_OFFSET_TYPE &&
           wire::load_u8(datagram.bytes.data() + ATP_OFFSET_TYPE) >= ATP_TYPE_CONTROL;
}

wire::Ecn ecn_of(const Arrival& arrival) { return arrival.congested ? wire::Ecn::congested : wire::Ecn::capable_0; }

}  // namespace

wire::Address address_of_switch(NodeId node) { return address_at(first_host + node, 0); }

Processes::Processes(const Shared& shared, ProgramId id)
    : Program(shared, id, shared.scenario.host_cost),
      ports_(shared.fabric.nodes.size()),
      paths_(shared),
      indices_({.in_sequence = shared.scenario.linear,
                .parts = shared.scenario.partition ? shared.scenario.jobs : 1,
                .in_flight = shared.scenario.most_packets}),
      forwarded_(shared.scenario.forward_share, shared.scenario.seed),
      notes_sent_(shared.scenario.forward_share != 0 || shared.scenario.owned_share > 0) {
    const Scenario& scenario = shared.scenario;
    if (scenario.ack_lists && scenario.owned_share > 0) batch_time_ = usual_batch_time;
}

std::string Processes::describe(std::span<std::byte> packet) const { return wire::describe_datagram(packet); }

// ---------------------------------------------------------------------------------------------------------- Processes

ProcessId Processes::reserve(NodeId at) {
    const auto process = static_cast<ProcessId>(processes_.size());
    std::vector<ProcessId>& ports = ports_[at];
    assert(ports.size() < std::size_t{0x10000} - first_port);
    processes_.push_back(std::make_unique<Process>());
    processes_.back()->node = at;
    processes_.back()->address = address_at(first_host + at, ports.size());
    ports.push_back(process);
    return process;
}

ProcessId Processes::find(const wire::Address& address) const {
    if (address.data()->sa_family != AF_INET) return no_process;
    sockaddr_in v4{};
    std::memcpy(&v4, address.data(), sizeof v4);
    const std::uint32_t host = ntohl(v4.sin_addr.s_addr);
    if (host >= first_group) return host - first_group < groups_.size() ? group_bit | (host - first_group) : no_process;
    const NodeId node = host - first_host;
    const std::uint32_t port = std::uint32_t{ntohs(v4.sin_port)} - first_port;
    return node < ports_.size() && port < ports_[node].size() ? ports_[node][port] : no_process;
}

void Processes::start_rank(ProcessId process, const endpoint::ChannelMachineConfig& config, RankUser& user,
                           std::uint32_t tag, Time now) {
    Process& each = process_at(process);
    each.rank = std::make_unique<host::RankHost>(config, each.address, shared_.scenario.blind_resend);
    each.user = &user;
    each.tag = tag;
    for (Group& group : groups_) {
        const bool is_member = control::address_of(config.terms.group) == group.address;
        if (is_member && std::ranges::find(group.members, process) == group.members.end()) {
            group.members.push_back(process);
        }
    }
    each.rank->handle_timeout(now);
    drive(process, now);
}

const wire::Address& Processes::group_address(std::uint32_t number) {
    while (groups_.size() <= number) {
        const auto host = first_group + static_cast<std::uint32_t>(groups_.size());
        groups_.push_back({address_at(host, 0).with_port(control::Multicast::port)});
    }
    return groups_[number].address;
}

const wire::Address& Processes::switch_address(const SwitchPlace& place) {
    return process_at(start_switch(place)).address;
}

ProcessId Processes::start_switch(const SwitchPlace& place) {
    const auto [entry, is_new] = switches_.try_emplace({place.node, place.only_serves}, no_process);
    if (!is_new) return entry->second;
    const Scenario& scenario = shared_.scenario;
    const ProcessId process = entry->second = reserve(place.node);
    host::SwitchHostConfig config{.address = process_at(process).address};
    config.shard.table = table_of(scenario);
    if (place.only_serves) config.shard.table.aggregators = 0;
    config.shard.tree = tree_of(scenario, shared_.fabric.nodes[place.node].name);
    config.shard.indices = indices();
    if (!scenario.ack_lists) config.shard.ack_hold = Duration::zero();
    process_at(process).at_switch =
        std::make_unique<SwitchProcess>(std::move(config), shared_.fabric.nodes[place.node].name, shared_.trace);
    process_at(process).at_switch->start(mix64(mix64(scenario.seed, boot_stream), ++boots_));
    return process;
}

const SwitchProcess* Processes::switch_at(const SwitchPlace& place) const {
    const auto found = switches_.find({place.node, place.only_serves});
    return found == switches_.end() ? nullptr : process_at(found->second).at_switch.get();
}

const protocol::Switch* Processes::table_at(NodeId node) const {
    if (paths_.contains(node)) return paths_.table_at(node);
    const SwitchProcess* const at = switch_at({.node = node});
    return at == nullptr || at->host() == nullptr ? nullptr : &at->host()->shard().table();
}

std::optional<SwitchCounters> Processes::counters_at(NodeId node) const {
    bool is_switch = paths_.contains(node);
    SwitchCounters sum = paths_.counters_at(node);
    for (const bool only_serves : {false, true}) {
        const SwitchProcess* const at = switch_at({node, only_serves});
        if (at == nullptr) continue;
        is_switch = true;
        add_to(at->counters(), sum);
    }
    return is_switch ? std::optional(sum) : std::nullopt;
}

SwitchTotals Processes::totals_of(std::uint32_t job) const {
    SwitchTotals totals{.added = paths_.added_for(job)};
    for (const auto& [place, process] : switches_) process_at(process).at_switch->add_totals(job, totals);
    return totals;
}

void Processes::crash_switch(const SwitchPlace& place, Duration lasts, Time now) {
    paths_.crash(place.node, now + lasts);
    const auto found = switches_.find({place.node, place.only_serves});
    if (found == switches_.end()) return;
    Process& each = process_at(found->second);
    each.at_switch->stop();
    for (const PacketId packet : std::exchange(each.at_switch->batch, {})) pool().release(packet);
    each.at_switch->batch_from.clear();
    each.at_switch->batch_ends = never;
    each.restarts_at = now + lasts;
    set_timer(found->second, each.restarts_at);
}

// ----------------------------------------------------------------------------------------------------------- Arrivals

void Processes::receive(const Arrival& arrival, Time now) {
    pool().retain(arrival.packet);
    deliver(arrival, now);
}

void Processes::forward(const Arrival& arrival, Time now) { deliver(arrival, now); }

void Processes::deliver(Arrival arrival, Time now) {
    paths_.mark(arrival);
    const bool is_for_group = (arrival.process & group_bit) != 0;
    const bool passes = is_for_group || process_at(arrival.process).node != arrival.to;
    if (passes && paths_.contains(arrival.to)) {
        check_flush(arrival);
        const wire::Address to = is_for_group ? wire::Address() : process_at(arrival.process).address;
        if (!paths_.pass(arrival, process_at(pool().sender(arrival.packet)).address, to, now)) return;
        if (!is_for_group) copy_in_path(arrival, to, now);
    }
    if (is_for_group) return deliver_to_group(arrival, now);
    const Process& each = process_at(arrival.process);
    if (each.node != arrival.to) {
        const Network::Onward onward{
            .congested = arrival.congested, .is_report = arrival.is_report, .process = arrival.process};
        return send_on(arrival.to, arrival.packet, onward, now);
    }
    if (each.rank != nullptr) {
        if (shared_.scenario.in_path) arrival.packet = pool().exclusive(arrival.packet);  // it may be a copy for all
        deliver_to_rank(arrival, false, now);
    } else if (each.at_switch != nullptr && each.at_switch->host() != nullptr) {
        deliver_to_switch(arrival, now);
    } else {
        report_closed(arrival, now);
        pool().release(arrival.packet);
    }
}

void Processes::check_flush(const Arrival& arrival) {
    if (pool().size(arrival.packet) < ATP_HEADER_BYTES ||
        wire::load_u8(pool().data(arrival.packet) + ATP_OFFSET_TYPE) != ATP_TYPE_FLUSH) {
        return;
    }
    const auto objection = shared_.truth.objection_to_flush(arrival.to, pool().bytes(arrival.packet));
    if (objection) fail(*objection);
}

namespace {

wire::SendError send_error_of(std::span<const std::byte> quoted, const wire::Address& closed) {
    wire::SendError error{.kind = wire::SendError::Kind::port_unreachable, .to = closed, .by_network = true};
    error.quoted_bytes = std::min(quoted.size(), error.quoted.size());
    std::ranges::copy(quoted.first(error.quoted_bytes), error.quoted.begin());
    return error;
}

}  // namespace

void Processes::deliver_to_rank(const Arrival& arrival, bool by_group, Time now) {
    Process& each = process_at(arrival.process);
    const std::span<std::byte> bytes = pool().bytes(arrival.packet);
    const wire::Address& from = process_at(pool().sender(arrival.packet)).address;
    const wire::Datagram datagram{.bytes = bytes, .capacity = bytes.size(), .from = &from, .ecn = ecn_of(arrival)};
    if (arrival.is_report) {
        each.rank->handle_send_error(send_error_of(bytes, from), now);
    } else if (by_group) {
        each.rank->handle_group_datagram(datagram, now);
    } else {
        each.rank->handle_datagram(datagram, now);
    }
    pool().release(arrival.packet);
    drive(arrival.process, now);
}

void Processes::deliver_to_switch(const Arrival& arrival, Time now) {
    SwitchProcess& at = *process_at(arrival.process).at_switch;
    const ProcessId from = pool().sender(arrival.packet);
    if (arrival.is_report) {
        PoolOutbox out(*this, arrival.process, {}, now);
        const wire::SendError error = send_error_of(pool().bytes(arrival.packet), process_at(from).address);
        at.keep_counts([&] { at.host()->handle_send_error(error, out, now); });
        pool().release(arrival.packet);
        set_timer(arrival.process, at.host()->poll_timeout());
        return;
    }
    check_flush(arrival);
    const PacketId packet = pool().exclusive(arrival.packet);
    if (batch_time_ == Duration::zero()) {
        const wire::Datagram datagram = datagram_of(packet, from, arrival.congested);
        return handle_batch(arrival.process, {&datagram, 1}, {&packet, 1}, now);
    }
    at.batch.push_back(packet);
    at.batch_from.push_back({.from = from, .congested = arrival.congested});
    if (at.batch.size() == endpoint::ShardMachine::most_batch) {
        run_batch(arrival.process, now);
    } else if (at.batch.size() == 1) {
        at.batch_ends = now + batch_time_;
        set_timer(arrival.process, at.batch_ends);
    }
}

wire::Datagram Processes::datagram_of(PacketId packet, ProcessId from, bool congested) {
    return {.bytes = pool().bytes(packet),
            .capacity = pool().capacity(),
            .from = &process_at(from).address,
            .ecn = congested ? wire::Ecn::congested : wire::Ecn::capable_0};
}

void Processes::run_batch(ProcessId process, Time now) {
    SwitchProcess& at = *process_at(process).at_switch;
    const std::vector<PacketId> batch = std::exchange(at.batch, {});
    std::vector<wire::Datagram> datagrams;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        datagrams.push_back(datagram_of(batch[i], at.batch_from[i].from, at.batch_from[i].congested));
    }
    at.batch_from.clear();
    at.batch_ends = never;
    handle_batch(process, datagrams, batch, now);
}

void Processes::handle_batch(ProcessId process, std::span<const wire::Datagram> batch,
                             std::span<const PacketId> packets, Time now) {
    SwitchProcess& at = *process_at(process).at_switch;
    {
        PoolOutbox out(*this, process, packets, now);
        const auto handle = [&] { at.host()->handle_batch(batch, out, now); };
        std::ranges::any_of(batch, is_control) ? at.keep_counts(handle) : handle();
    }
    for (const PacketId packet : packets) pool().release(packet);
    set_timer(process, at.host()->poll_timeout());
}

// A host reports to the sender that no process has the port. Reports are not reported.
void Processes::report_closed(const Arrival& arrival, Time now) {
    if (arrival.is_report) return;
    const auto last = reported_.find(arrival.to);
    if (shared_.scenario.faults.limits_reports && last != reported_.end() &&
        now - last->second < std::chrono::seconds(1)) {
        return;
    }
    reported_[arrival.to] = now;
    const PacketId report = pool().allocate(id_);
    const std::span<std::byte> packet = pool().bytes(arrival.packet);
    const std::size_t quoted = std::min(packet.size(), wire::SendError::most_quoted_bytes);
    std::memcpy(pool().data(report), packet.data(), quoted);
    pool().resize(report, quoted);
    pool().set_sender(report, arrival.process);
    send_on(arrival.to, report, {.is_report = true, .process = pool().sender(arrival.packet)}, now);
}

// --------------------------------------------------------------------------------------------------------- Departures

void Processes::send(ProcessId from, PacketId packet, const wire::Address& to, bool congested, Time now) {
    const ProcessId process = find(to);
    if (process == no_process) return pool().release(packet);
    if ((process & group_bit) != 0) {
        Arrival arrival{.time = now, .packet = packet, .to = process_at(from).node, .congested = congested};
        arrival.process = process;
        return deliver_to_group(arrival, now);
    }
    send_on(process_at(from).node, packet, {.congested = congested, .process = process}, now);
}

void Processes::send_on(NodeId from, PacketId packet, const Network::Onward& onward, Time now) {
    const NodeId to = process_at(onward.process).node;
    if (to == from) {
        shared_.network.deliver_here(from, packet, onward, now);
    } else {
        shared_.network.send(shared_.fabric.next_hop(from, to), packet, onward, now);
    }
}

void Processes::note(ProcessId from, std::span<std::byte> packet) {
    SwitchProcess* const at = process_at(from).at_switch.get();
    if (at == nullptr) {
        forwarded_.mark(packet);
    } else if (shared_.scenario.owned_share > 0 && packet.size() >= ATP_HEADER_BYTES &&
               !wire::control_type(packet).has_value() &&
               wire::load_u8(packet.data() + ATP_OFFSET_TYPE) == ATP_TYPE_ACK_LIST) {
        at->note_list(packet);
    }
}

void Processes::drive(ProcessId process, Time now) {
    Process& each = process_at(process);
    while (const auto event = each.rank->poll_event(now)) each.user->on_rank_event(each.tag, *event, now);
    {
        PoolOutbox out(*this, process, {}, now);
        each.rank->transmit(out, now);
    }
    set_timer(process, each.rank->poll_timeout());
    each.user->on_driven(each.tag, now);
}

// ------------------------------------------------------------------------------------------------------------- Timers

void Processes::wake(std::uint32_t process, Time now) {
    Process& each = process_at(process);
    if (each.wake_at > now) return;  // superseded by an earlier event
    each.wake_at = never;
    if (each.rank != nullptr) {
        if (each.rank->poll_timeout() > now) return set_timer(process, each.rank->poll_timeout());
        each.rank->handle_timeout(now);
        drive(process, now);
    } else if (each.at_switch != nullptr) {
        run_switch(process, now);
    }
}

void Processes::run_switch(ProcessId process, Time now) {
    Process& each = process_at(process);
    SwitchProcess& at = *each.at_switch;
    if (each.restarts_at <= now) {
        each.restarts_at = never;
        at.start(mix64(mix64(shared_.scenario.seed, boot_stream), ++boots_));
    }
    if (at.host() == nullptr) return set_timer(process, each.restarts_at);
    if (at.batch_ends <= now) run_batch(process, now);
    if (at.host()->poll_timeout() <= now) {
        PoolOutbox out(*this, process, {}, now);
        at.keep_counts([&] { at.host()->handle_timeout(out, now); });
    }
    set_timer(process, std::min(at.batch_ends, at.host()->poll_timeout()));
}

}  // namespace atp::sim
