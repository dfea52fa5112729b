// SPDX-License-Identifier: Apache-2.0
#include "check/machines.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "check/formation_machines.h"
#include "check/host_machines.h"
#include "check/joining_machines.h"
#include "check/switchml_machines.h"
#include "endpoint/routing.h"
#include "protocol/breaks.h"
#include "protocol/switch_event.h"
#include "wire/control.h"
#include "wire/trace.h"

namespace atp::check::ATP_VARIANT {
namespace {

// `sending` decides only which round trips are measured, and a timeout of the model does not depend on them. No machine
// reads `peer` of most answers. Packets that differ in these alone are one packet here, so that the number of states
// stays finite.
void omit_unread(std::span<std::byte> packet) {
    const std::uint8_t type = wire::load_u8(packet.data() + ATP_OFFSET_TYPE);
    const std::uint16_t flags = wire::load_u16(packet.data() + ATP_OFFSET_FLAGS);
    const bool has_lanes = wire::load_u8(packet.data() + ATP_OFFSET_LANES) != 0;
    const bool has_sum = type == ATP_TYPE_ACK && has_lanes && (flags & ATP_FLAG_ONE_SENDER) == 0;
    wire::store_u8(packet.data() + ATP_OFFSET_SENDING, 0);
    if (type != ATP_TYPE_NACK && type != ATP_TYPE_WAIT && !has_sum) return;
    wire::store_u16(packet.data() + ATP_OFFSET_PEER, ATP_WORKER_ALL);
}

std::uint8_t event_named(std::string_view what) {
    for (unsigned event = 0; event < ATP_EVENT_COUNT; ++event) {
        if (protocol::event_name(event) == what) return static_cast<std::uint8_t>(event);
    }
    return ATP_EVENT_PASSED;
}

// The packet of this event ends at the switch.
bool absorbs(std::string_view what, std::uint8_t event) {
    return what != protocol::event_name(event) || event == ATP_EVENT_CLAIMED || event == ATP_EVENT_ADDED ||
           event == ATP_EVENT_DUPLICATE || event == ATP_EVENT_TAKEN_OVER || event == ATP_EVENT_SUPERSEDED;
}

}  // namespace

// Sees each packet after the table of one process has handled it.
class Machines::Watch final : public wire::TraceSink {
  public:
    Watch(Machines& machines, unsigned node) : machines_(machines), node_(node) {}

    // Between begin() and end(), it reports.
    void begin(Input input, Step& step) { input_ = input, step_ = &step; }
    void end() { step_ = nullptr; }
    void packet(Time /*now*/, std::string_view what, std::span<const std::byte> bytes, const wire::Address* /*peer*/,
                bool /*arrived*/) override {
        if (step_ != nullptr) machines_.note_passage(node_, input_, what, bytes, *step_);
    }

  private:
    Machines& machines_;
    unsigned node_;
    Input input_ = Input::packet;
    Step* step_ = nullptr;
};

Machines::Machines(const Configuration& configuration, const Incarnation& incarnation)
    : Processes(configuration, incarnation), states_(layout_.size()) {
    for (unsigned node = 0; node < layout_.size(); ++node) make_node(node);
    join();
}

Machines::~Machines() = default;

void Machines::make_node(unsigned node) {
    NodeState& at = states_[node];
    const Node& place = layout_.node(node);
    const bool hosts = layout_.server(place.job) == node;
    if (hosts) at.servers.resize(place.kind == NodeKind::server ? 1 : configuration_.jobs);
    switch (place.kind) {
        case NodeKind::worker: {
            at.rank =
                std::make_unique<host::RankHost>(config_of_rank(place.job, place.index), layout_.address_of(node));
            const bool differs = static_cast<int>(place.index) == configuration_.mismatched_worker;
            at.add_tensors(configuration_, truth_, incarnation_.earlier, place.index,
                           truth_.offset_of(incarnation_.first_seq), differs ? 2 : 1);
            return;
        }
        case NodeKind::server: {
            endpoint::ChannelMachineConfig config = config_of_rank(place.job, 0);
            config.hosts_server = true;
            at.rank = std::make_unique<host::RankHost>(config, layout_.address_of(node));
            return;
        }
        case NodeKind::aggregating_switch: break;
    }
    at.released.resize(configuration_.aggregators);
    host::SwitchHostConfig config = config_of_switch(node, 0);
    if (place.is_pipeline) {
        at.pipeline = std::make_unique<PipelineSwitch>(configuration_, *membership_, place.level);
    } else if (place.in_path) {
        // Its agent is no part of a state. Nobody polls it, so its jobs stay.
        at.in_path =
            std::make_unique<host::PathHost>(host::PathHostConfig{.table = config.shard.table, .level = place.level});
    } else {
        at.watch = std::make_unique<Watch>(*this, node);
        config.shard.trace = at.watch.get();
        at.process = std::make_unique<host::SwitchHost>(config);
    }
}

// -------------------------------------------------------------------------------------------------------------- States

template <class Archive>
void Machines::persist_membership(NodeState& at, Archive& archive) {
    at.rank ? at.rank->persist_joining(archive) : at.process->persist_joining(archive);
}

template <class Archive>
void Machines::persist(NodeState& at, Archive& archive) {
    if (at.pipeline) return at.pipeline->persist(archive);
    if (at.rank) at.rank->persist_data(archive);
    if (at.process) at.process->persist_data(archive);
    if (at.in_path) at.in_path->persist(archive);
    if (!at.tensors.empty()) archive.value(at.stored), archive.value(at.sent_index), archive.value(at.ended);
    if (!at.tensors.empty() && configuration_.has_marks())
        archive.value(at.taken), archive.value(at.marked), archive.value(at.halved_until);
    for (FragmentId& id : at.released) archive.value(id);
    for (Completion& completion : at.servers) archive.value(completion.accepted), archive.value(completion.completed);
    if (configuration_.ack_lists == 0 || !at.process) return;
    auto size = static_cast<std::uint16_t>(at.batch.size());
    at.owed.persist(archive), archive.value(at.batch_ends), archive.value(size);
    at.batch.resize(size);
    archive.bytes(at.batch);
}

void Machines::load(unsigned node, std::span<const std::byte> state) {
    NodeState& at = states_[node];
    StateReader reader(state, at.tensors);
    if (at.rank || at.process) {
        std::uint32_t membership = 0;
        reader.value(membership);
        if (membership != at.membership) {
            StateReader part(at.memberships[membership]);
            persist_membership(at, part);
            at.membership = membership;
        }
    }
    persist(at, reader);
    assert(reader.at_end());
    if (at.pipeline || at.rank) return;
    seen_.clear();
    for (std::uint32_t index = 0; index < configuration_.aggregators; ++index)
        seen_.push_back(table_of(at).aggregator(index));
}

std::uint32_t Machines::write(unsigned node, Time now, Bytes& state) {
    NodeState& at = states_[node];
    StateWriter writer(state, now, at.tensors);
    std::uint32_t membership = 0;
    if (at.rank || at.process) {
        scratch_.clear();
        StateWriter part(scratch_, now);
        persist_membership(at, part);
        membership = at.memberships.intern(scratch_).first;
        writer.value(membership);
    }
    persist(at, writer);
    return membership;
}

// Restored times are those of four moments. After a packet, the membership has only times that are restored as they
// are, unless it has changed.
void Machines::save(unsigned node, Input input, Step& step) {
    NodeState& at = states_[node];
    const std::uint32_t membership = write(node, time_of(input), step.state);
    const bool is_restored = membership == at.membership && time_of(input) == model_now;
    if (!is_restored) at.membership = no_number;
    summarise(node, time_of(input), step);
}

void Machines::start(unsigned node, Step& step) {
    step.reset();
    NodeState& at = states_[node];
    load(node, at.initial);
    for (protocol::Tensor* tensor : at.tensors) {
        [[maybe_unused]] const bool submitted = at.rank->submit(*tensor, model_now, after_deadline);
        assert(submitted);
    }
    if (!at.tensors.empty()) drain_worker(node, model_now, step);
    save(node, Input::packet, step);
}

void Machines::step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
                    Step& step) {
    step.reset();
    if (before.empty() || input == Input::crash) {
        step.summary.crashed = step.summary.done = true;
        return;
    }
    NodeState& at = states_[node];
    load(node, input == Input::restart ? at.initial : before);
    if (input == Input::restart) return save(node, Input::packet, step);
    const Flight flight = packet.empty() ? Flight{} : Flight::of(packet);
    if (input == Input::change) {
        step_change(at, step);
    } else if (!at.tensors.empty()) {
        step_worker(node, input, flight, step);
    } else if (at.rank) {
        step_server(node, input, flight, step);
    } else if (at.pipeline) {
        step_pipeline(node, input, flight, step);
    } else if (at.in_path) {
        step_in_path(node, input, flight, step);
    } else {
        step_switch(node, input, flight, step);
    }
    save(node, input, step);
}

// --------------------------------------------------------------------------------------------------------------- Ranks

void Machines::hand_over(host::RankHost& rank, Input input, const Flight& flight) {
    if (input == Input::timeout || input == Input::deadline) {
        rank.handle_timeout(time_of(input));
    } else {
        rank.handle_datagram(datagram_of(flight, input), time_of(input));
    }
}

void Machines::step_worker(unsigned node, Input input, const Flight& flight, Step& step) {
    const bool is_list =
        !flight.bytes.empty() && wire::load_u8(flight.bytes.data() + ATP_OFFSET_TYPE) == ATP_TYPE_ACK_LIST;
    if (is_list) return step_worker_with_list(node, input, flight, step);
    NodeState& worker = states_[node];
    const CheckedStores assessed(worker.owned, worker.stored, step.violation);
    const protocol::Worker& machine = worker.rank->machine().worker();
    const protocol::WorkerCounters before = machine.counters();
    const std::uint32_t window = machine.window_packets();
    hand_over(*worker.rank, input, flight);
    if (machine.counters().audit_failures != before.audit_failures)
        step.violate("the audit lane caught a wrong result at a worker");
    if (configuration_.has_marks()) {
        assess_window(worker, {.acks = before.acks, .halvings = before.halvings, .packets = window}, flight.bytes,
                      step);
    }
    drain_worker(node, time_of(input), step);
}

// Each ACK of a list must have the effect of one that arrives alone.
void Machines::step_worker_with_list(unsigned node, Input input, const Flight& flight, Step& step) {
    NodeState& worker = states_[node];
    const auto state = [&] {
        Bytes bytes;
        write(node, time_of(input), bytes);
        return bytes;
    };
    const Bytes before = state();
    Step alone;
    for (Bytes& ack : acks_of(flight.bytes)) {
        hand_over(*worker.rank, input, {.from = flight.from, .to = flight.to, .bytes = ack});
    }
    drain_worker(node, time_of(input), alone);
    const Bytes after_all = state();
    worker.membership = no_number;
    load(node, before);
    hand_over(*worker.rank, input, flight);
    drain_worker(node, time_of(input), step);
    const auto bytes_of = [](const Sent& sent) { return std::span(sent.bytes).first(sent.size); };
    const auto same = [&](const Sent& a, const Sent& b) { return std::ranges::equal(bytes_of(a), bytes_of(b)); };
    if (state() != after_all || !std::ranges::equal(alone.sent, step.sent, same))
        step.violate("a list of ACKs has another effect than its ACKs alone");
}

void Machines::drain_worker(unsigned node, Time now, Step& step) {
    using Kind = endpoint::ChannelEvent::Kind;
    NodeState& worker = states_[node];
    while (const auto event = worker.rank->poll_event(now)) {
        if (event->kind == Kind::completed) assess_completed(worker, step);
        worker.ended = worker.ended || event->kind == Kind::differs || event->kind == Kind::failed;
        if (event->kind == Kind::differs && configuration_.mismatched_worker < 0)
            step.violate("a worker received a mismatch, although all workers called the same operation");
    }
    worker.rank->transmit(out_, now);
    take_sent(node, step);
}

void Machines::step_server(unsigned node, Input input, const Flight& flight, Step& step) {
    NodeState& at = states_[node];
    wire::Packet packet;
    const wire::Datagram datagram = datagram_of(flight, input);
    if (wire::decode(datagram.bytes, packet) != wire::DecodeError::none)
        return step.violate("a packet in the network cannot be decoded");
    merge_ = {packet.header, at.rank->machine().server()->counters()};
    at.rank->handle_datagram(datagram, model_now);
    finish_merge(node, step);
    at.rank->transmit(out_, model_now);
    take_sent(node, step);
}

// ------------------------------------------------------------------------------------------------------------ Switches

void Machines::step_switch(unsigned node, Input input, const Flight& flight, Step& step) {
    NodeState& at = states_[node];
    at.watch->begin(input, step);
    if (!flight.bytes.empty()) assess_flush(node, flight.bytes, step);
    if (configuration_.ack_lists != 0) {
        step_batch(node, flight, step);
    } else {
        at.process->handle_datagram(datagram_of(flight, input), out_, time_of(input));
        finish_merge(node, step);
        take_sent(node, step);
    }
    at.watch->end();
}

void Machines::note_passage(unsigned node, Input input, std::string_view what, std::span<const std::byte> bytes,
                            Step& step) {
    finish_merge(node, step);
    NodeState& at = states_[node];
    Bytes copy(bytes.begin(), bytes.end());
    wire::Packet packet;
    if (wire::decode(copy, packet) != wire::DecodeError::none)
        return step.violate("a packet in the network cannot be decoded");
    const atp_header& header = packet.header;
    const std::uint8_t event = event_named(what);
    const bool in_batch = configuration_.ack_lists != 0;  // the whole batch has passed the table
    const std::uint32_t place = table_of(at).place_of(header).value_or(header.index);
    if (!in_batch) assess_switch(at, header, place, input, event, step);
    seen_[place] = table_of(at).aggregator(place);
    if (absorbs(what, event)) return;
    assess_gradient(bytes, step);
    if (in_batch && is_empty_ack(bytes)) at.owed.take(bytes);
    if (at.servers.empty()) return;
    if (!wire::goes_up(header.type)) return assess_answer(bytes, step);
    if (in_batch) return;
    if (const protocol::Server* server = server_of(node, job_of(header.token))) {
        merge_ = {header, server->counters()};
    }
}

// The server has handled the packet that it was about to get.
void Machines::finish_merge(unsigned node, Step& step) {
    const auto merge = std::exchange(merge_, std::nullopt);
    if (!merge) return;
    NodeState& at = states_[node];
    const unsigned job = at.rank ? 0 : job_of(merge->header.token);
    if (const protocol::Server* server = server_of(node, job)) assess_merge(at.servers[job], *server, *merge, step);
}

// nullptr: it hosts none for this job.
const protocol::Server* Machines::server_of(unsigned node, unsigned job) const {
    const NodeState& at = states_[node];
    if (at.rank) return at.rank->machine().server();
    const protocol::Server* found = nullptr;
    at.process->shard().tree().for_each([&](const control::Branch& branch) {
        if (job_of(branch.terms.token) == job) found = at.process->shard().server_of(branch);
    });
    return found;
}

void Machines::step_in_path(unsigned node, Input input, const Flight& flight, Step& step) {
    NodeState& at = states_[node];
    const wire::Datagram datagram = datagram_of(flight, input);
    wire::Packet packet;
    if (wire::decode(datagram.bytes, packet) != wire::DecodeError::none)
        return step.violate("a packet in the network cannot be decoded");
    protocol::PacketBuffer buffer{.data = datagram.bytes.data(),
                                  .size = static_cast<std::uint32_t>(datagram.bytes.size()),
                                  .capacity = static_cast<std::uint32_t>(datagram.capacity),
                                  .congested = input == Input::packet_marked,
                                  .verdict = {}};
    static_cast<void>(at.in_path->handle_packet(buffer, layout_.address_of(flight.from), layout_.address_of(flight.to),
                                                time_of(input)));
    assess_switch(at, packet.header, packet.header.index, input, buffer.verdict.event, step);
    if (buffer.verdict.route != protocol::Route::drop) pass_on(node, flight, {buffer.data, buffer.size}, step);
}

// A packet that a switch in the path has turned around goes back to its sender.
void Machines::pass_on(unsigned node, const Flight& flight, std::span<const std::byte> bytes, Step& step) {
    assess_gradient(bytes, step);
    Flight next{.from = flight.from, .to = flight.to, .bytes = bytes};
    if (endpoint::goes_up(bytes) != endpoint::goes_up(flight.bytes)) std::swap(next.from, next.to);
    step.sent.push_back(next.sent_to(layout_.next(node, next.from, next.to)));
}

// Puts in flight what a process has sent, and checks it.
void Machines::take_sent(unsigned node, Step& step) {
    NodeState& at = states_[node];
    std::span<const std::byte> last;
    std::vector<wire::Address> receivers;  // of the last packet
    std::vector<host::PacketList::ListedPacket> packets = out_.take();
    for (auto& packet : packets) {
        const std::span<std::byte> bytes = packet.bytes;
        if (wire::control_type(bytes)) {
            step.sent.push_back(sent_from(node, packet));
            continue;
        }
        omit_unread(bytes);
        // Several receivers get copies of one packet.
        const bool is_copy =
            std::ranges::equal(bytes, last) && std::ranges::find(receivers, packet.to) == receivers.end();
        if (!is_copy && at.process && configuration_.ack_lists != 0 && is_empty_ack(bytes))
            step.violate(at.owed.leave(bytes));
        if (!at.tensors.empty()) {
            assess_sending(at, bytes, step);
            const bool marks = static_cast<int>(layout_.node(node).index) == configuration_.marked_worker;
            if (marks && wire::load_u8(bytes.data() + ATP_OFFSET_TYPE) == ATP_TYPE_GRADIENT) {
                std::byte* const flags = bytes.data() + ATP_OFFSET_FLAGS;
                wire::store_u16(flags, wire::load_u16(flags) | ATP_FLAG_ECN);
            }
        } else if (at.rank) {
            assess_answer(bytes, step);
        }
        step.sent.push_back(sent_from(node, packet));
        if (!is_copy) receivers.clear();
        receivers.push_back(packet.to);
        last = bytes;
    }
}

std::unique_ptr<System> make_system(const Configuration& configuration) {
    using switchml::Mode;
    if (configuration.protocol == Protocol::atp) return std::make_unique<Machines>(configuration);
    if (configuration.protocol == Protocol::joining) return std::make_unique<JoiningMachines>(configuration);
    if (configuration.protocol == Protocol::host) return std::make_unique<HostMachines>(configuration);
    if (configuration.protocol == Protocol::formation) return std::make_unique<FormationMachines>(configuration);
    const Mode mode = ATP_BREAK(version_bit_alone) ? Mode::faithful : Mode::compares_offsets;
    return std::make_unique<SwitchMlMachines>(configuration, mode);
}

}  // namespace atp::check::ATP_VARIANT
