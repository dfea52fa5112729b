// SPDX-License-Identifier: Apache-2.0
#include "check/machines.h"

#include "check/formation_machines.h"
#include "check/host_machines.h"
#include "check/joining_machines.h"

#include <algorithm>
#include <cassert>

#include "check/switchml_machines.h"
#include "endpoint/routing.h"
#include "protocol/breaks.h"

namespace atp::check::ATP_VARIANT {
namespace {

constexpr std::uint32_t packet_capacity = ATP_HEADER_BYTES + model_lanes * ATP_LANE_BYTES;

std::span<std::byte> used(Sent& sent) { return std::span(sent.bytes).first(sent.size); }

// `sending` decides only which round trips are measured, and a timeout of the model does not depend on them. No machine
// reads `peer` of most answers. Packets that differ in these alone are one packet here, so that the number of states
// stays finite.
void omit_unread(Sent& sent) {
    const std::uint8_t type = wire::load_u8(sent.bytes.data() + ATP_OFFSET_TYPE);
    const std::uint16_t flags = wire::load_u16(sent.bytes.data() + ATP_OFFSET_FLAGS);
    const bool has_lanes = wire::load_u8(sent.bytes.data() + ATP_OFFSET_LANES) != 0;
    const bool has_sum = type == ATP_TYPE_ACK && has_lanes && (flags & ATP_FLAG_ONE_SENDER) == 0;
    wire::store_u8(sent.bytes.data() + ATP_OFFSET_SENDING, 0);
    if (type != ATP_TYPE_NACK && type != ATP_TYPE_WAIT && !has_sum) return;
    wire::store_u16(sent.bytes.data() + ATP_OFFSET_PEER, ATP_WORKER_ALL);
}

}  // namespace

Machines::Machines(const Configuration& configuration)
    : configuration_(configuration),
      layout_(configuration_),
      truth_(configuration_, layout_.membership()),
      workers_(layout_.size()),
      servers_(layout_.size()),
      switches_(layout_.size()) {
    for (unsigned at = 0; at < layout_.size(); ++at) {
        const Node& node = layout_.node(at);
        switch (node.kind) {
            case NodeKind::worker:
                workers_[at] = make_worker(node.job, node.index, false, configuration_.first_seq);
                break;
            case NodeKind::server: servers_[at].machine = make_server(node.job, false, configuration_.first_seq); break;
            case NodeKind::aggregating_switch: add_switch(at); break;
        }
    }
}

Machines::~Machines() = default;

Machines::WorkerNode Machines::make_worker(unsigned job, unsigned rank, bool earlier, std::uint32_t first_seq) const {
    WorkerNode node;
    protocol::WorkerConfig config;
    config.channel = channel_of(configuration_, job, earlier);
    config.channel.first_seq = first_seq;
    config.rank = static_cast<std::uint16_t>(rank);
    config.place = layout_.membership().place(config.rank);
    config.senders = protocol::SenderMasks(layout_.membership(), config.rank);
    config.scale = 1;
    if (configuration_.bounded) config.bypass_above = protocol::bounded_magnitude(layout_.membership().workers());
    config.min_timeout = config.max_timeout = model_timeout;
    config.probe_burst = configuration_.window();
    config.tensors = static_cast<std::uint32_t>(configuration_.tensors.size());
    node.machine = std::make_unique<protocol::Worker>(config);
    const std::uint16_t purpose = static_cast<int>(rank) == configuration_.mismatched_worker ? 2 : 1;
    node.add_tensors(configuration_, truth_, earlier, rank, truth_.offset_of(first_seq), purpose);
    return node;
}

std::unique_ptr<protocol::Server> Machines::make_server(unsigned job, bool earlier, std::uint32_t first_seq) const {
    protocol::ServerConfig config;
    config.channel = channel_of(configuration_, job, earlier);
    config.channel.first_seq = first_seq;
    config.scale = 1;
    // The server does not suppress repeated answers: model time does not advance, so it would suppress them for ever.
    config.repeat_interval = Duration::zero();
    return std::make_unique<protocol::Server>(config, layout_.membership());
}

void Machines::add_switch(unsigned at) {
    const Node& node = layout_.node(at);
    if ((configuration_.pipelines >> node.index & 1U) != 0) {
        switches_[at].pipeline = std::make_unique<PipelineSwitch>(configuration_, layout_.membership(), node.level);
        return;
    }
    protocol::SwitchConfig config;
    config.aggregators = configuration_.aggregators;
    config.lanes = model_lanes;
    config.jobs = configuration_.jobs;
    config.ageing = model_ageing;
    switches_[at].machine = std::make_unique<protocol::Switch>(config);
    switches_[at].released.resize(config.aggregators);
    for (unsigned job = 0; job < configuration_.jobs; ++job) {
        [[maybe_unused]] const bool admitted =
            switches_[at].machine->admit(job_number(job), job_token(job, false), node.level);
        assert(admitted);
    }
    if (configuration_.ack_lists != 0 && !layout_.is_in_path(at)) {
        switches_[at].lists = std::make_unique<AckLists>(configuration_, layout_, at);
    }
}

void Machines::start(unsigned node, Step& step) {
    step.reset();
    WorkerNode& worker = workers_[node];
    if (worker.machine) {
        worker.submit_tensors();
        drain_worker(node, model_now, step);
    }
    save(node, model_now, step);
}

// Packets of an earlier token or fragment that are still in flight: a gradient of rank 0, and a result to the last
// rank.
void Machines::earlier_packets(std::vector<Sent>& sent) {
    for (unsigned job = 0; job < configuration_.jobs; ++job) {
        if (configuration_.earlier_incarnation) leave_behind(job, true, configuration_.first_seq, sent);
        if (configuration_.stale_packets) leave_behind(job, false, configuration_.first_seq - 1, sent);
    }
}

void Machines::leave_behind(unsigned job, bool earlier, std::uint32_t first_seq, std::vector<Sent>& sent) {
    const std::unique_ptr<protocol::Server> server = make_server(job, earlier, first_seq);
    const unsigned workers = layout_.membership().workers();
    for (unsigned rank = 0; rank < workers; ++rank) {
        WorkerNode worker = make_worker(job, rank, earlier, first_seq);
        if (!worker.machine->submit(*worker.tensors[0], model_now)) continue;
        Sent gradient;
        gradient.size = static_cast<std::uint32_t>(worker.machine->poll_transmit(gradient.bytes, model_now).value());
        omit_unread(gradient);
        gradient.to = layout_.up(layout_.worker(job, rank), job);
        if (rank == 0) sent.push_back(gradient);
        server->handle_packet(used(gradient), false, model_now);
    }
    Sent result;
    result.size = static_cast<std::uint32_t>(server->poll_transmit(result.bytes).value().size);
    omit_unread(result);
    result.to = layout_.worker(job, workers - 1);
    sent.push_back(result);
}

template <class Archive>
void Machines::persist(WorkerNode& worker, Archive& archive) {
    worker.persist(archive);
    archive.value(worker.sent_index);
}

template <class Archive>
void Machines::persist(ServerNode& server, Archive& archive) {
    server.machine->persist(archive);
    archive.value(server.accepted), archive.value(server.completed);
}

template <class Archive>
void Machines::persist(SwitchNode& node, Archive& archive) {
    if (node.pipeline) return node.pipeline->persist(archive);
    node.machine->persist(archive);
    for (FragmentId& id : node.released) archive.value(id);
    if (node.lists) node.lists->persist(archive);
}

void Machines::load(unsigned node, std::span<const std::byte> state) {
    StateReader reader(state, workers_[node].tensors);
    if (workers_[node].machine) {
        persist(workers_[node], reader);
    } else if (servers_[node].machine) {
        persist(servers_[node], reader);
    } else {
        persist(switches_[node], reader);
    }
    assert(reader.at_end());
}

void Machines::save(unsigned node, Time now, Step& step) {
    StateWriter writer(step.state, now, workers_[node].tensors);
    if (workers_[node].machine) {
        persist(workers_[node], writer);
    } else if (servers_[node].machine) {
        persist(servers_[node], writer);
    } else {
        persist(switches_[node], writer);
    }
    summarise(node, step);
}

void Machines::step_node(unsigned node, Input input, Step& step) {
    if (workers_[node].machine) {
        step_worker(node, input, step);
    } else if (servers_[node].machine) {
        step_server(node, input, step);
    } else {
        step_switch(node, input, step);
    }
}

void Machines::step_worker(unsigned node, Input input, Step& step) {
    WorkerNode& worker = workers_[node];
    const bool is_packet = input == Input::packet || input == Input::packet_marked;
    const bool is_list = is_packet && wire::load_u8(packet_.bytes.data() + ATP_OFFSET_TYPE) == ATP_TYPE_ACK_LIST;
    if (is_list) return step_worker_with_list(node, input, step);
    const CheckedStores assessed(worker.owned, worker.stored, step.violation);
    worker.handle(input, used_packet());
    drain_worker(node, time_of(input), step);
}

// Each ACK of a list must have the effect of one that arrives alone.
void Machines::step_worker_with_list(unsigned node, Input input, Step& step) {
    WorkerNode& worker = workers_[node];
    const auto state = [&] {
        Bytes bytes;
        StateWriter writer(bytes, time_of(input), worker.tensors);
        persist(worker, writer);
        return bytes;
    };
    const Bytes before = state();
    Step alone;
    for (Bytes& ack : acks_of(used_packet())) worker.handle(input, ack);
    drain_worker(node, time_of(input), alone);
    const Bytes after_all = state();
    load(node, before);
    worker.handle(input, used_packet());
    drain_worker(node, time_of(input), step);
    const auto bytes_of = [](const Sent& sent) { return std::span(sent.bytes).first(sent.size); };
    const auto same = [&](const Sent& a, const Sent& b) { return std::ranges::equal(bytes_of(a), bytes_of(b)); };
    if (state() != after_all || !std::ranges::equal(alone.sent, step.sent, same))
        step.violate("a list of ACKs has another effect than its ACKs alone");
}

void Machines::drain_worker(unsigned node, Time now, Step& step) {
    WorkerNode& worker = workers_[node];
    const Node& place = layout_.node(node);
    Sent sent;
    sent.to = layout_.up(node, place.job);
    while (const auto size = worker.machine->poll_transmit(sent.bytes, now)) {
        sent.size = static_cast<std::uint32_t>(*size);
        omit_unread(sent);
        assess_sending(worker, sent, step);
        const bool gradient = wire::load_u8(sent.bytes.data() + ATP_OFFSET_TYPE) == ATP_TYPE_GRADIENT;
        if (gradient && configuration_.marked_worker == place.index) {
            std::byte* flags = sent.bytes.data() + ATP_OFFSET_FLAGS;
            wire::store_u16(flags, wire::load_u16(flags) | ATP_FLAG_ECN);
        }
        step.sent.push_back(sent);
    }
    while (const auto event = worker.machine->poll_event()) assess_event(worker, *event, step);
}

void Machines::step_server(unsigned node, Input input, Step& step) {
    ServerNode& server = servers_[node];
    const protocol::ServerCounters before = server.machine->counters();
    server.machine->handle_packet(used_packet(), input == Input::packet_marked, model_now);
    assess_merge(server, before, step);
    Sent sent;
    while (const auto transmit = server.machine->poll_transmit(sent.bytes)) {
        sent.size = static_cast<std::uint32_t>(transmit->size);
        omit_unread(sent);
        assess_answer(sent, step);
        layout_.down(node, layout_.node(node).job, endpoint::downward_of(used(sent)), next_);
        for (const unsigned to : next_) {
            sent.to = to;
            step.sent.push_back(sent);
        }
    }
    if (server.machine->counters().unsent != before.unsent) step.violate("the server's queue of answers was full");
}

void Machines::step_switch(unsigned node, Input input, Step& step) {
    SwitchNode& at = switches_[node];
    if (at.pipeline) return step_pipeline(node, input, step);
    if (input == Input::restart) {
        at.machine->clear();
        std::ranges::fill(at.released, FragmentId{});
        if (at.lists) at.lists->clear();
        return;
    }
    if (is_command(used_packet())) return at.lists->send_all(step);
    wire::Packet packet;
    if (wire::decode(used_packet(), packet) != wire::DecodeError::none) {
        step.violate("a packet in the network cannot be decoded");
        return;
    }
    const atp_aggregator before = at.machine->aggregator(packet.header.index);
    protocol::PacketBuffer packet_buffer{.data = packet_.bytes.data(),
                                         .size = packet_.size,
                                         .capacity = packet_capacity,
                                         .congested = input == Input::packet_marked,
                                         .verdict = {}};
    at.machine->handle_packet(packet_buffer, time_of(input));
    assess_switch(at, packet.header, before, input, packet_buffer.verdict.event, step);
    packet_.size = packet_buffer.size;
    const protocol::Route taken = packet_buffer.verdict.route;
    if (taken == protocol::Route::drop) {
        if (packet.header.type == ATP_TYPE_FLUSH) pass_flush(node, packet.header, step);
    } else if (taken == protocol::Route::up || !at.lists || !at.lists->take(packet_buffer, *at.machine, step)) {
        route(node, packet_buffer.verdict, step);
    }
}

// A switch in the path may hold the partial sum that this switch does not have.
void Machines::pass_flush(unsigned node, const atp_header& flush, Step& step) {
    const unsigned job = flush.job - job_number(0);
    if (!configuration_.switch_in_path || layout_.is_in_path(node)) return;
    Sent sent;
    sent.size = ATP_HEADER_BYTES;
    wire::encode_header(flush, sent.bytes);
    layout_.down(node, job, endpoint::downward_of(used(sent)), next_);
    sent.to = next_.front();
    step.sent.push_back(sent);
}

void Machines::route(unsigned node, const protocol::Verdict& verdict, Step& step) {
    const unsigned job = verdict.job - job_number(0);
    wire::Packet packet;
    if (wire::decode(used_packet(), packet) != wire::DecodeError::none) {
        step.violate("the switch sent a packet that cannot be decoded");
        return;
    }
    if (verdict.route == protocol::Route::up) {
        if (packet.header.type == ATP_TYPE_GRADIENT) step.violate(truth_.wrong_gradient(packet));
        packet_.to = layout_.up(node, job);
        step.sent.push_back(packet_);
        return;
    }
    layout_.down(node, job, endpoint::downward_of(used_packet()), next_);
    for (const unsigned to : next_) {
        packet_.to = to;
        step.sent.push_back(packet_);
    }
}

std::string Machines::describe(std::span<const std::byte> packet) const {
    if (is_command(packet)) return "the lists of ACKs leave";
    std::uint8_t kind = 0;
    const std::span<const std::byte> plain = packet_between_passes(packet, kind);
    Bytes copy(plain.begin(), plain.end());
    wire::Packet decoded;
    if (wire::decode(copy, decoded) != wire::DecodeError::none) return "undecodable";
    std::string text = kind == 0 ? "" : "pass " + std::to_string(kind) + " of ";
    text += wire::to_string(decoded.header, decoded.lane_count());
    for (std::size_t lane = 0; lane < decoded.lane_count(); ++lane) {
        text += (lane == 0 ? " lanes=" : ",") + std::to_string(wire::load_u32(decoded.lanes.data() + 4 * lane));
    }
    return text;
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
