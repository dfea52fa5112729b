// SPDX-License-Identifier: Apache-2.0
#include "check/switchml_machines.h"

#include <algorithm>
#include <cassert>

#include "protocol/sequence.h"

namespace atp::check {

using namespace atp::switchml;

namespace {

constexpr std::uint16_t lanes = 1;

}  // namespace

SwitchMlMachines::SwitchMlMachines(const Configuration& configuration, Mode mode)
    : configuration_(configuration),
      membership_(*protocol::Membership::star(configuration.workers())),
      truth_(configuration_, membership_),
      switch_({.slots = configuration.jobs * configuration.window(), .lanes = lanes}) {
    for (unsigned job = 0; job < configuration.jobs; ++job) {
        const JobConfig config = job_config(job, mode);
        [[maybe_unused]] const bool admitted = switch_.admit(config);
        assert(admitted);
        for (unsigned rank = 0; rank < membership_.workers(); ++rank) workers_.push_back(make_worker(config, rank));
    }
}

JobConfig SwitchMlMachines::job_config(unsigned job, Mode mode) const {
    return {.job = static_cast<std::uint8_t>(job),
            .workers = static_cast<std::uint8_t>(membership_.workers()),
            .slots_log2 = configuration_.window_log2,
            .lanes = lanes,
            .mode = mode,
            .first_offset = configuration_.first_seq};
}

SwitchMlMachines::WorkerNode SwitchMlMachines::make_worker(const JobConfig& job, unsigned rank) const {
    WorkerNode node;
    switchml::WorkerConfig config;
    config.job = job;
    config.rank = static_cast<std::uint8_t>(rank);
    config.scale = 1;
    config.timeout = model_timeout;
    config.tensors = static_cast<std::uint32_t>(configuration_.tensors.size());
    node.machine = std::make_unique<Worker>(config);
    node.add_tensors(configuration_, truth_, false, rank, 0);
    return node;
}

std::string SwitchMlMachines::name(unsigned node) const {
    if (node == switch_node()) return "switch";
    const std::string job = configuration_.jobs > 1 ? "job" + std::to_string(node / membership_.workers()) + "." : "";
    return job + "worker" + std::to_string(node % membership_.workers());
}

void SwitchMlMachines::start(unsigned node, Step& step) {
    step.reset();
    if (node != switch_node()) {
        WorkerNode& worker = workers_[node];
        for (protocol::Tensor* tensor : worker.tensors) {
            [[maybe_unused]] const auto number = worker.machine->submit(*tensor, model_now, after_deadline);
            assert(number);
        }
        drain(worker, model_now, step);
    }
    save(node, model_now, step);
}

// None: in SwitchML only the job number distinguishes two incarnations, and the switch gives each a new job number.
void SwitchMlMachines::earlier_packets(std::vector<Sent>& /*sent*/) {}

void SwitchMlMachines::load(unsigned node, std::span<const std::byte> state) {
    if (node == switch_node()) {
        StateReader reader(state);
        switch_.persist(reader);
        assert(reader.at_end());
        return;
    }
    StateReader reader(state, workers_[node].tensors);
    persist(workers_[node], reader);
    assert(reader.at_end());
}

void SwitchMlMachines::save(unsigned node, Time now, Step& step) {
    if (node == switch_node()) {
        StateWriter writer(step.state, now);
        switch_.persist(writer);
        return;
    }
    StateWriter writer(step.state, now, workers_[node].tensors);
    persist(workers_[node], writer);
    summarise(workers_[node], step);
}

void SwitchMlMachines::step(unsigned node, std::span<const std::byte> before, Input input,
                            std::span<const std::byte> packet, Step& step) {
    step.reset();
    if (before.empty() || input == Input::crash) {
        step.summary.crashed = step.summary.done = true;
        return;
    }
    load(node, before);
    packet_.size = static_cast<std::uint32_t>(packet.size());
    std::ranges::copy(packet, packet_.bytes.begin());
    if (node == switch_node()) {
        step_switch(input, step);
    } else {
        step_worker(workers_[node], input, step);
    }
    save(node, time_of(input), step);
}

void SwitchMlMachines::step_worker(WorkerNode& worker, Input input, Step& step) {
    const CheckedStores assessed(worker.owned, worker.stored, step.violation);
    if (input == Input::timeout || input == Input::deadline) {
        worker.machine->handle_timeout(time_of(input));
    } else {
        worker.machine->handle_packet(used_packet(), input == Input::packet_marked, time_of(input));
    }
    drain(worker, time_of(input), step);
}

void SwitchMlMachines::drain(WorkerNode& worker, Time now, Step& step) {
    Sent sent;
    sent.to = switch_node();
    while (const auto size = worker.machine->poll_transmit(sent.bytes, now)) {
        sent.size = static_cast<std::uint32_t>(*size);
        step.sent.push_back(sent);
    }
    while (const auto event = worker.machine->poll_event()) {
        if (event->kind == switchml::WorkerEvent::Kind::overflowed) step.violate("a sum overflowed");
        if (event->kind != switchml::WorkerEvent::Kind::completed) continue;
        const std::uint32_t all = worker.owned[static_cast<std::size_t>(event->tensor)]->all_stored();
        if ((worker.stored & all) != all) step.violate("a tensor was reported complete without all of its sums");
    }
}

void SwitchMlMachines::step_switch(Input input, Step& step) {
    if (input == Input::restart) {
        switch_.clear();
        return;
    }
    const Verdict verdict = switch_.handle_packet(used_packet());
    if (verdict.event == Event::refused || verdict.event == Event::misfit || verdict.event == Event::ahead) {
        step.violate("the switch received a packet that no worker can have sent");
    }
    if (verdict.route == Route::drop) return;
    assess_result(used_packet(), step);
    for (unsigned rank = 0; rank < membership_.workers(); ++rank) {
        if (verdict.route == Route::worker && verdict.worker != rank) continue;
        packet_.to = first_node_of(verdict.job) + rank;
        step.sent.push_back(packet_);
    }
}

// Every result must include every worker exactly once.
void SwitchMlMachines::assess_result(std::span<std::byte> result, Step& step) const {
    switchml::Packet packet;
    if (switchml::decode(result, packet) != switchml::DecodeError::none) {
        step.violate("the switch sent a packet that cannot be decoded");
        return;
    }
    double sum = 0;
    for (unsigned rank = 0; rank < membership_.workers(); ++rank) {
        sum += double{truth_.value(false, rank, truth_.offset_of(packet.header.offset))};
    }
    const auto found = static_cast<std::int32_t>(wire::load_u32(packet.lanes.data()));
    if (static_cast<double>(found) != sum) {
        step.violate("a result is " + std::to_string(found) + ", the sum is " +
                     std::to_string(static_cast<std::int64_t>(sum)));
    }
}

void SwitchMlMachines::summarise(const WorkerNode& worker, Step& step) const {
    Summary& summary = step.summary;
    summary.done = worker.machine->idle();
    summary.failed = worker.machine->failed();
    summary.timer_armed = worker.machine->poll_timeout() < after_deadline;
    for (std::uint32_t slot = 0; slot < configuration_.window(); ++slot) {
        const auto offset = static_cast<std::uint32_t>(truth_.offset_of(worker.machine->offset_of(slot)));
        summary.phase[slot] = static_cast<std::uint8_t>(offset >> configuration_.window_log2);
    }
}

// No worker may be more than one phase behind another worker (§3.5 of the SwitchML paper). Otherwise one shadow copy
// would not be sufficient.
SystemAssessment SwitchMlMachines::assess(unsigned node, const Claims& /*claims*/, Summaries after) const {
    const unsigned first = first_node_of(node / membership_.workers());
    for (unsigned rank = 0; rank < membership_.workers(); ++rank) {
        const Summary& other = *after[first + rank];
        if (other.crashed) continue;
        for (std::uint32_t slot = 0; slot < configuration_.window(); ++slot) {
            const int apart = int{after[node]->phase[slot]} - int{other.phase[slot]};
            if (apart > 1 || apart < -1) return {.violation = "a worker is more than one phase ahead of another"};
        }
    }
    return {};
}

std::string SwitchMlMachines::describe(std::span<const std::byte> packet) const {
    Bytes copy(packet.begin(), packet.end());
    switchml::Packet decoded;
    if (switchml::decode(copy, decoded) != switchml::DecodeError::none) return "undecodable";
    return switchml::to_string(decoded.header, decoded.lane_count()) +
           " lanes=" + std::to_string(static_cast<std::int32_t>(wire::load_u32(decoded.lanes.data())));
}

}  // namespace atp::check
