// SPDX-License-Identifier: Apache-2.0
#include "sim/systems/switchml_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "switchml/packet.h"

namespace atp::sim {
namespace {

using SwitchEvent = switchml::Event;
using switchml::Mode;
using switchml::Route;
using switchml::Verdict;
using switchml::WorkerConfig;
using switchml::WorkerEvent;

// A usual length of a network card's ring. Further packets wait in the worker, before their timers start.
constexpr std::uint64_t transmit_ring_packets = 1024;
// A float16 represents 11 bits and a sign exactly.
constexpr unsigned half_sum_bits = 12;
constexpr std::size_t errors_kept = 8;

std::uint16_t slot_of(const std::byte* packet) { return wire::load_u16(packet + switchml::offset_slot); }

GradientShape shape_of(const Scenario& scenario, unsigned index) {
    const switchml::JobConfig config = scenario.switchml_config(index);
    GradientShape shape{.key = mix64(scenario.seed, scenario.first_job + index),
                        .workers = config.workers,
                        .payload_lanes = config.lanes,
                        .window = config.slots(),
                        .float_share = scenario.float_share,
                        .overflow_share = scenario.overflow_share,
                        .plain_share = scenario.plain_share,
                        .sizes = scenario.gradients};
    if (config.halves) shape.sum_bits = half_sum_bits;
    return shape;
}

}  // namespace

SwitchmlJob::Endpoint::Endpoint(const WorkerConfig& config)
    : worker(config), at_host(transmit_ring_packets), sent_at(config.job.slots()) {}

SwitchmlJob::SwitchmlJob(const Shared& shared, ProgramId id, unsigned index)
    : Job(shared, id, shared.scenario.host_cost, index),
      config_(shared.scenario.switchml_config(index)),
      source_(shape_of(shared.scenario, index)),
      rank_at_(shared.fabric.nodes.size()) {
    if (!shared.switchml.admit(config_)) fail("the switch did not admit the job");
    const auto buckets = static_cast<std::uint32_t>(workload_.buckets.size());
    endpoints_.reserve(ranks());
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        endpoints_.emplace_back(WorkerConfig{.job = config_,
                                             .rank = static_cast<std::uint8_t>(rank),
                                             .scale = gradient_scale,
                                             .timeout = shared.scenario.switchml.timeout,
                                             .tensors = buckets});
        rank_at_[site().worker_hosts[rank]] = rank;
    }
    for (const workload::Workload::Bucket& bucket : workload_.buckets) {
        fragments_ += (bucket.elements + config_.lanes - 1) / config_.lanes;
    }
    wake_system_at(report_.started, start_event());
}

// ----------------------------------------------------------------------------------------------------------- Machines

void SwitchmlJob::submit(unsigned rank, workload::Training::Buckets buckets, Time now) {
    Endpoint& endpoint = endpoints_[rank];
    if (endpoint.worker.failed()) return;
    const std::size_t count = workload_.buckets.size();
    if (buckets.first == 0) {
        endpoint.tensors.clear();
        endpoint.tensors.reserve(count);  // the worker borrows the tensors: no reallocation
    }
    const std::optional<Duration> deadline = shared_.scenario.effective_deadline();
    for (std::uint32_t bucket = buckets.first; bucket < buckets.last; ++bucket) {
        const std::uint64_t tensor = std::uint64_t{training_.iterations_done(rank)} * count + bucket;
        endpoint.tensors.emplace_back(source_, rank, tensor, workload_.buckets[bucket].elements);
        const auto number = endpoint.worker.submit(endpoint.tensors.back(), now, deadline ? now + *deadline : never);
        if (number != tensor) fail(fmt::format("rank {}: tensor {} was refused", rank, tensor));
    }
    drive(rank, now);
}

void SwitchmlJob::drive(unsigned rank, Time now) {
    Endpoint& endpoint = endpoints_[rank];
    transmit(rank, now);
    while (const auto event = endpoint.worker.poll_event()) on_event(rank, *event, now);
    wake_by(rank, endpoint.worker.poll_timeout());
}

void SwitchmlJob::transmit(unsigned rank, Time now) {
    PacketPool& pool = shared_.network.pool();
    Endpoint& endpoint = endpoints_[rank];
    const LinkId uplink = shared_.fabric.uplinks[site().worker_hosts[rank]];
    while (true) {
        if (!endpoint.at_host.has_room(now)) {
            wake_by(rank, endpoint.at_host.half_empty_at());
            return;
        }
        const PacketId packet = pool.allocate(id_);
        const std::uint64_t sent_before = endpoint.worker.counters().sent;
        const auto size = endpoint.worker.poll_transmit(pool.room(packet), now);
        if (!size) {
            pool.release(packet);
            return;
        }
        if (endpoint.worker.counters().sent != sent_before) endpoint.sent_at[slot_of(pool.data(packet))] = now;
        pool.resize(packet, *size);
        pool.address(packet, shared_.fabric.links[uplink].to, pool.size(packet), config_.mode == Mode::lossless);
        shared_.network.send(uplink, packet, false, now);
        endpoint.at_host.add(shared_.network.link(uplink).idle_at(), 1);
    }
}

void SwitchmlJob::receive(const Arrival& arrival, Time now) {
    const unsigned rank = rank_at_[arrival.to];
    Endpoint& endpoint = endpoints_[rank];
    const std::span<std::byte> packet = shared_.network.pool().bytes(arrival.packet);
    const std::uint64_t results_before = endpoint.worker.counters().results;
    endpoint.worker.handle_packet(packet, arrival.congested, now);
    if (endpoint.worker.counters().results != results_before) {
        endpoint.round_trips += now - endpoint.sent_at[slot_of(packet.data())];
    }
    drive(rank, now);
}

void SwitchmlJob::forward(const Arrival& arrival, Time now) {
    Network& network = shared_.network;
    const PacketId packet = network.pool().exclusive(arrival.packet);
    const Verdict verdict = shared_.switchml.handle_packet(network.pool().bytes(packet));
    network.notify(arrival.to, to_string(verdict.event), packet, now);
    const auto send_copy = [&](unsigned rank) {
        network.pool().retain(packet);
        network.send(shared_.fabric.next_hop(arrival.to, site().worker_hosts[rank]), packet, arrival.congested, now);
    };
    if (verdict.route == Route::worker) send_copy(verdict.worker);
    if (verdict.route == Route::everybody) {
        for (unsigned rank = 0; rank < ranks(); ++rank) send_copy(rank);
    }
    network.pool().release(packet);
}

std::string SwitchmlJob::describe(std::span<std::byte> bytes) const {
    switchml::Packet packet;
    const switchml::DecodeError error = switchml::decode(bytes, packet);
    return error == switchml::DecodeError::none ? switchml::to_string(packet.header, packet.lane_count())
                                                : fmt::format("undecodable: {}", switchml::to_string(error));
}

// ------------------------------------------------------------------------------------------------------------- Events

void SwitchmlJob::on_system_event(std::uint32_t event, Time now) {
    if (event == start_event()) {
        for (unsigned rank = 0; rank < ranks(); ++rank) begin(rank, 0, now);
        return;
    }
    Endpoint& endpoint = endpoints_[event];
    if (endpoint.woken_at > now) return;  // superseded by an earlier event
    endpoint.woken_at = never;
    endpoint.worker.handle_timeout(now);
    drive(event, now);
}

NodeId SwitchmlJob::node_of_system_event(std::uint32_t event) const {
    return event == start_event() ? no_node : site().worker_hosts[event];
}

// Schedules an event, unless an earlier event is scheduled. That event then schedules the next event: most timers move
// later, so this saves events.
void SwitchmlJob::wake_by(unsigned rank, Time time) {
    if (time >= endpoints_[rank].woken_at) return;
    endpoints_[rank].woken_at = time;
    wake_system_at(time, rank);
}

void SwitchmlJob::on_event(unsigned rank, const WorkerEvent& event, Time now) {
    Endpoint& endpoint = endpoints_[rank];
    const auto bucket = static_cast<std::uint32_t>(event.tensor % workload_.buckets.size());
    const GradientTensor& tensor = endpoint.tensors[bucket];
    if (event.kind == WorkerEvent::Kind::timed_out) {
        on_timed_out(rank, event);
        return;
    }
    if (event.kind == WorkerEvent::Kind::overflowed) {
        ++endpoint.overflowed;
    } else if (!tensor.right()) {
        fail(fmt::format("rank {}: wrong sum, {} of {} elements delivered; {}", rank, tensor.stored(), tensor.size(),
                         source_.mismatch()));
    }
    summed(rank, bucket, now);
}

void SwitchmlJob::on_timed_out(unsigned rank, const WorkerEvent& event) {
    ++report_.timed_out;
    if (report_.errors.size() == errors_kept) return;
    const std::string answer = event.answered ? fmt::format("switch answered last at {:.3f} ms",
                                                            to_milliseconds(event.answered_at.time_since_epoch()))
                                              : "switch never answered";
    report_.errors.push_back(fmt::format("job {} rank {}: tensor {} timed out after {:.3f} ms; {}", name(), rank,
                                         event.tensor, to_milliseconds(event.elapsed), answer));
}

// ------------------------------------------------------------------------------------------------------------- Report

SwitchmlCounters SwitchmlJob::worker_counters() const {
    SwitchmlCounters sum{};
    for (const Endpoint& endpoint : endpoints_) add_counters(switchml_fields, endpoint.worker.counters(), sum);
    return sum;
}

JobReport SwitchmlJob::report() const {
    JobReport report = Job::report();
    SwitchmlReport& own = report.switchml.emplace();
    own.slots = config_.slots();
    own.workers = worker_counters();
    own.at_switch = at_switch();
    Duration round_trips{};
    for (const Endpoint& endpoint : endpoints_) round_trips += endpoint.round_trips;
    own.round_trip = round_trips / std::max<std::int64_t>(static_cast<std::int64_t>(own.workers.results), 1);
    return report;
}

double SwitchmlJob::share_done() const {
    const double all = static_cast<double>(fragments_) * ranks() * report_.iterations;
    return static_cast<double>(worker_counters().results) / all;
}

std::uint64_t SwitchmlJob::delivered_bytes() const {
    return worker_counters().results * config_.lanes * sizeof(float) / ranks();
}

std::uint64_t SwitchmlJob::added_in_network() const {
    return at_switch().count(SwitchEvent::completed) * (ranks() - 1);
}

std::string SwitchmlJob::whereabouts() const {
    std::string text;
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        const SwitchmlCounters& counters = endpoints_[rank].worker.counters();
        text +=
            fmt::format(" rank {}: iteration {}, {} packets without a result{};", rank, training_.iterations_done(rank),
                        counters.sent - counters.results, endpoints_[rank].worker.failed() ? ", gave up" : "");
    }
    return text;
}

void SwitchmlJob::check(const JobReport& job) {
    const auto expect_none = [&](std::string_view what, std::uint64_t count) {
        if (count != 0) fail(fmt::format("{}: {}", what, count));
    };
    const SwitchmlReport& own = *job.switchml;
    expect_none("packets refused by a worker", own.workers.refused);
    expect_none("packets of another job at a worker", own.workers.forged);
    expect_none("packets of another shape at the switch", own.count(SwitchEvent::misfit));
    expect_none("packets that the switch cannot read", shared_.switchml.counters().count(SwitchEvent::refused));
    expect_none("packets of no job at the switch", shared_.switchml.counters().count(SwitchEvent::forged));
    if (config_.mode == Mode::compares_offsets) {
        expect_none("packets of fragments that no worker can have reached", own.count(SwitchEvent::ahead));
    }
    const Scenario& scenario = shared_.scenario;
    const bool all_fit = scenario.float_share == 0 && scenario.overflow_share == 0 && !scenario.gradients;
    if (all_fit) expect_none("overflowed sums of values that cannot overflow", own.workers.overflowed);
    if (!job.finished) return;
    expect_none("packets without a result", own.workers.sent - own.workers.results);
    if (own.count(SwitchEvent::completed) * job.workers != own.workers.results) {
        fail(fmt::format("{} fragments completed, but {} workers took {} results", own.count(SwitchEvent::completed),
                         job.workers, own.workers.results));
    }
    const bool notified_alike = std::ranges::all_of(
        endpoints_, [&](const Endpoint& endpoint) { return endpoint.overflowed == endpoints_.front().overflowed; });
    if (!notified_alike) fail("workers received different overflow reports");
}

}  // namespace atp::sim
