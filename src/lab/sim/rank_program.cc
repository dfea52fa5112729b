// SPDX-License-Identifier: Apache-2.0
#include "sim/rank_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "policy/blind_resends.h"
#include "sim/counters.h"

namespace atp::sim {
namespace {

// Time that the remaining ranks take to agree on the next incarnation.
constexpr Duration forming_time = std::chrono::milliseconds(1);
constexpr std::size_t errors_kept = 8;

// Logarithm of the number of slots: at most one slot per aggregator, so that fragments without an aggregator wait.
std::uint8_t slots_within(std::uint32_t aggregators) {
    return static_cast<std::uint8_t>(std::bit_width(aggregators) - 1);
}

}  // namespace

AtpJob::AtpJob(const Shared& shared, ProgramId id, unsigned index)
    : Job(shared, id, shared.scenario.host_cost, index),
      rank_at_(shared.fabric.nodes.size(), -1),
      channels_(shared.scenario.channels),
      endpoints_(std::size_t{shared.scenario.channels} * ranks()),
      lists_(shared.fabric.switches),
      ranks_(ranks()) {
    const Scenario& s = shared.scenario;
    if (s.ack_lists && s.owned_share > 0) make_lists();
    if (s.partition || s.linear) {
        indices_.emplace(s.linear);
        if (s.partition) indices_->give_part(number(), s.aggregators / s.jobs * index);
    }
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        rank_at_[site().worker_hosts[rank]] = static_cast<std::int32_t>(rank);
    }
    wake_system_at(report_.started, form_event());
}

void AtpJob::fail(const std::string& text) {
    Program::fail(fmt::format("job {}, incarnation {}: {}", number(), report_.incarnations, text));
}

// ------------------------------------------------------------------------------------------------------ Incarnations

protocol::ChannelConfig AtpJob::channel_config(unsigned channel) const {
    const Scenario& s = shared_.scenario;
    const std::uint32_t part = s.aggregators / s.jobs;
    return {.job = number(),
            .token = token_,
            .channel = static_cast<std::uint16_t>(channel),
            .lanes = s.lanes,
            .window_log2 = s.partition ? std::min(s.window_log2, slots_within(part)) : s.window_log2,
            .audit = s.audit,
            .aggregators = s.partition ? part : s.aggregators,
            .first_seq = s.first_seq,
            .indices = indices_ ? &*indices_ : nullptr};
}

void AtpJob::form(Time now) {
    ++report_.incarnations;
    broken_ = forming_ = false;
    token_ = random_.between(1, ~std::uint64_t{0});
    if (shared_.trace != nullptr) {
        shared_.trace->note(now, fmt::format("job {}", number()),
                            fmt::format("forms incarnation {} with token {:#x}", report_.incarnations, token_));
    }
    first_iteration_ = shared_.scenario.iterations;
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        first_iteration_ = std::min(first_iteration_, training_.iterations_done(rank));
    }
    admit_everywhere();
    open_lists();
    for (unsigned channel = 0; channel < channels_.size(); ++channel) form_channel(channel);
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank] = Rank{};
        begin(rank, first_iteration_, now);
    }
    shared_.network.replay_kept(now);
}

void AtpJob::admit_everywhere() {
    for (NodeId s = 0; s < shared_.switches.size(); ++s) {
        if (site().levels[s] < 0) continue;
        if (admitted_token_ != 0) shared_.switches[s].dismiss(number(), admitted_token_);
        if (!shared_.switches[s].admit(number(), token_, static_cast<std::uint8_t>(site().levels[s]))) {
            fail(fmt::format("switch s{} did not admit the job", s));
        }
    }
    admitted_token_ = token_;
}

void AtpJob::form_channel(unsigned channel) {
    const Scenario& s = shared_.scenario;
    Channel& c = channels_[channel];
    retire(c);
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) retire(endpoints_[endpoint_of(channel, rank)]);
    c.source =
        std::make_unique<GradientSource>(GradientShape{.key = mix64(mix64(s.seed, token_), mix64(number(), channel)),
                                                       .workers = site().membership.workers(),
                                                       .payload_lanes = s.payload_lanes(),
                                                       .window = 1U << s.window_log2,
                                                       .float_share = s.float_share,
                                                       .overflow_share = s.overflow_share,
                                                       .plain_share = s.plain_share,
                                                       .owned_share = s.owned_share,
                                                       .sizes = s.gradients});
    // A worker repeats a request after at least one timeout, so the server must answer again after half a timeout.
    c.server.emplace(
        protocol::ServerConfig{
            .channel = channel_config(channel), .scale = gradient_scale, .repeat_interval = s.min_timeout / 2},
        site().membership);
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) form_worker(channel, rank);
}

void AtpJob::form_worker(unsigned channel, unsigned rank) {
    const Scenario& s = shared_.scenario;
    Endpoint& endpoint = endpoints_[endpoint_of(channel, rank)];
    protocol::WorkerConfig config;
    config.channel = channel_config(channel);
    config.rank = static_cast<std::uint16_t>(rank);
    config.place = site().membership.place(config.rank);
    config.senders = protocol::SenderMasks(site().membership, config.rank);
    config.scale = gradient_scale;
    config.congestion.initial_packets = s.initial_packets;
    if (!s.congestion_control) config.congestion.least_packets = UINT32_MAX;
    config.train = s.train;
    config.min_timeout = s.min_timeout;
    config.max_timeout = s.max_timeout;
    if (s.proactive) config.bypass_above = protocol::bounded_magnitude(ranks());
    config.tensors = static_cast<std::uint32_t>(workload_.buckets.size());
    endpoint.worker.emplace(config);
}

// Adds the counters of the machine to the report, and destroys the machine.
void AtpJob::retire(Endpoint& endpoint) {
    if (endpoint.worker) add_counters(worker_fields, endpoint.worker->counters(), report_.worker);
    endpoint = Endpoint{};
}

void AtpJob::retire(Channel& channel) {
    if (channel.server) add_counters(server_fields, channel.server->counters(), report_.server);
    channel.server.reset();
}

bool AtpJob::gave_up_or_done(unsigned rank) const {
    if (training_.finished(rank)) return true;
    bool failed = true;
    for (unsigned channel = 0; channel < channels_.size(); ++channel) {
        const Endpoint& endpoint = endpoints_[endpoint_of(channel, rank)];
        // A channel that has finished its part of the iteration waits for the failed channels.
        failed &= !endpoint.worker || endpoint.failed || (endpoint.open == 0 && training_.waits_for_sums(rank));
    }
    return failed;
}

void AtpJob::form_again_if_over(Time now) {
    if (!broken_ || forming_ || finished()) return;
    Time ready = std::max(now, server_up_at_);
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        if (!gave_up_or_done(rank)) return;
        ready = std::max(ready, ranks_[rank].up_at);
    }
    forming_ = true;
    wake_system_at(ready + forming_time, form_event());
}

void AtpJob::crash_worker(unsigned rank, Duration lasts, Time now) {
    if (finished() || report_.incarnations == 0 || forming_) return;
    for (unsigned channel = 0; channel < channels_.size(); ++channel) retire(endpoints_[endpoint_of(channel, rank)]);
    ranks_[rank].up_at = now + lasts;
    broken_ = true;
    form_again_if_over(now);
}

void AtpJob::crash_server(Duration lasts, Time now) {
    if (finished() || report_.incarnations == 0 || forming_) return;
    for (Channel& channel : channels_) retire(channel);
    server_up_at_ = now + lasts;
    broken_ = true;
    form_again_if_over(now);
}

// -------------------------------------------------------------------------------------------------------- Iterations

void AtpJob::submit(unsigned rank, workload::Training::Buckets buckets, Time now) {
    if (forming_ || !endpoints_[endpoint_of(0, rank)].worker) return;  // crashed: continues in the next incarnation
    Rank& r = ranks_[rank];
    r.open_channels.resize(workload_.buckets.size());
    for (unsigned channel = 0; channel < channels_.size(); ++channel) {
        for (std::uint32_t bucket = buckets.first; bucket < buckets.last; ++bucket) {
            r.open_channels[bucket] = static_cast<unsigned>(channels_.size());
            submit_bucket(channel, rank, bucket, now);
        }
    }
    for (unsigned channel = 0; channel < channels_.size(); ++channel) drive(endpoint_of(channel, rank), now);
}

void AtpJob::submit_bucket(unsigned channel, unsigned rank, std::uint32_t bucket, Time now) {
    const std::size_t buckets = workload_.buckets.size();
    const unsigned done = training_.iterations_done(rank);
    Endpoint& endpoint = endpoints_[endpoint_of(channel, rank)];
    if (bucket == 0) {
        endpoint.tensors.clear();
        endpoint.tensors.reserve(buckets);  // the worker borrows the tensors: no reallocation
        endpoint.first_tensor = std::uint64_t{done - first_iteration_} * buckets;
    }
    endpoint.tensors.emplace_back(*channels_[channel].source, rank, std::uint64_t{done} * buckets + bucket,
                                  share_of(workload_.buckets[bucket].elements, channel, channels_.size()));
    ++endpoint.open;
    const std::optional<Duration> deadline = shared_.scenario.effective_deadline();
    const auto number = endpoint.worker->submit(endpoint.tensors.back(), now, deadline ? now + *deadline : never);
    if (number != endpoint.first_tensor + bucket) fail(fmt::format("rank {}: tensor {} was refused", rank, bucket));
}

void AtpJob::on_completed(std::uint32_t id, std::uint64_t number, Time now) {
    Endpoint& endpoint = endpoints_[id];
    const auto bucket = static_cast<std::uint32_t>(number - endpoint.first_tensor);
    const GradientTensor& tensor = endpoint.tensors[bucket];
    if (!tensor.right()) {
        fail(fmt::format("rank {} channel {}: wrong sum, {} of {} elements delivered; {}", rank_of(id), channel_of(id),
                         tensor.stored(), tensor.size(), channels_[channel_of(id)].source->mismatch()));
    }
    --endpoint.open;
    if (--ranks_[rank_of(id)].open_channels[bucket] == 0) summed(rank_of(id), bucket, now);
}

// Every error must have a reason and name the known cause, and must arrive by the deadline.
void AtpJob::on_timed_out(std::uint32_t id, const protocol::WorkerEvent& event) {
    const Scenario& s = shared_.scenario;
    endpoints_[id].failed = true;
    broken_ = true;
    ++report_.timed_out;
    const std::optional<Duration> deadline = s.effective_deadline();
    Duration paused{};
    for (const Outage& outage : s.faults.outages) {
        if (outage.kind == Outage::Kind::pause) paused += outage.lasts;
    }
    if (!deadline || event.elapsed > *deadline + paused) {
        fail(fmt::format("rank {}: tensor {} timed out after {:.3f} ms, later than its deadline or without a deadline",
                         rank_of(id), event.tensor, to_milliseconds(event.elapsed)));
    }
    if (report_.errors.size() == errors_kept) return;
    const std::string answer = event.answered ? fmt::format("server answered last at {:.3f} ms",
                                                            to_milliseconds(event.answered_at.time_since_epoch()))
                                              : "server never answered";
    report_.errors.push_back(
        fmt::format("job {} incarnation {} rank {} channel {}: tensor {} timed out after {:.3f} ms; {}; missing units "
                    "{:#x} members {:#x}",
                    number(), report_.incarnations, rank_of(id), channel_of(id), event.tensor,
                    to_milliseconds(event.elapsed), answer, event.missing_units, event.missing_members));
}

// ---------------------------------------------------------------------------------------------------------- Machines

void AtpJob::on_system_event(std::uint32_t event, Time now) {
    if (event == form_event()) {
        form(now);
    } else if (event > form_event()) {
        on_lists_due(event - lists_event(0), now);
    } else {
        on_timer(event, now);
    }
}

NodeId AtpJob::node_of_system_event(std::uint32_t event) const {
    if (event > form_event()) return event - lists_event(0);
    return event == form_event() ? no_node : host_of_endpoint(event);
}

void AtpJob::deliver_to_worker(unsigned channel, unsigned rank, const Arrival& arrival, Time now) {
    if (channel >= channels_.size()) return;
    const std::uint32_t id = endpoint_of(channel, rank);
    if (!endpoints_[id].worker) return;
    endpoints_[id].worker->handle_packet(shared_.network.pool().bytes(arrival.packet), arrival.congested, now);
    drive(id, now);
}

void AtpJob::deliver_to_server(unsigned channel, const Arrival& arrival, Time now) {
    if (channel >= channels_.size() || !channels_[channel].server) return;
    ++report_.server_packets;
    const std::span<std::byte> packet = shared_.network.pool().bytes(arrival.packet);
    report_.server_bytes += packet.size();
    channels_[channel].server->handle_packet(packet, arrival.congested, now);
    drive_server(channels_[channel], now);
}

void AtpJob::drive_server(Channel& channel, Time now) {
    PacketPool& pool = shared_.network.pool();
    while (channel.server->has_transmit()) {
        const PacketId packet = pool.allocate(id_);
        const auto transmit = channel.server->poll_transmit(pool.room(packet));
        if (!transmit) {
            pool.release(packet);
            return;
        }
        pool.resize(packet, transmit->size);
        shared_.network.send(site().up[site().server_host], packet, false, now);
    }
}

void AtpJob::drive(std::uint32_t id, Time now) {
    PacketPool& pool = shared_.network.pool();
    Endpoint& endpoint = endpoints_[id];
    const LinkId uplink = site().up[host_of_endpoint(id)];
    while (true) {
        const PacketId packet = pool.allocate(id_);
        const auto size = endpoint.worker->poll_transmit(pool.room(packet), now);
        if (!size) {
            pool.release(packet);
            break;
        }
        pool.resize(packet, *size);
        if (shared_.scenario.blind_resend && policy::turn_probe_into_nack(pool.bytes(packet))) {
            endpoint.worker->handle_packet(pool.bytes(packet), false, now);
            pool.release(packet);
            continue;
        }
        bypass_forced(pool.data(packet));
        shared_.network.send(uplink, packet, false, now);
    }
    while (const auto event = endpoint.worker->poll_event()) on_event(id, *event, now);
    if (broken_) form_again_if_over(now);
    set_timer(id);
}

void AtpJob::on_event(std::uint32_t id, const protocol::WorkerEvent& event, Time now) {
    if (event.kind == protocol::WorkerEvent::Kind::completed) {
        on_completed(id, event.tensor, now);
    } else {
        on_timed_out(id, event);
    }
}

// Most timeouts move later with each ACK. An event that fires too early schedules the next event, so most moves cost
// nothing.
void AtpJob::set_timer(std::uint32_t id) {
    Endpoint& endpoint = endpoints_[id];
    const Time requested = endpoint.worker->poll_timeout();
    if (requested >= endpoint.wake_at) return;
    endpoint.wake_at = requested;
    wake_system_at(requested, id);
}

void AtpJob::on_timer(std::uint32_t id, Time now) {
    Endpoint& endpoint = endpoints_[id];
    if (endpoint.wake_at > now) return;  // of an earlier incarnation, or superseded by an earlier event
    endpoint.wake_at = never;
    if (!endpoint.worker) return;
    if (endpoint.worker->poll_timeout() > now) {
        set_timer(id);
        return;
    }
    endpoint.worker->handle_timeout(now);
    drive(id, now);
}

JobReport AtpJob::report() const {
    JobReport report = Job::report();
    for (const Endpoint& endpoint : endpoints_) {
        if (endpoint.worker) add_counters(worker_fields, endpoint.worker->counters(), report.worker);
    }
    for (const Channel& channel : channels_) {
        if (channel.server) add_counters(server_fields, channel.server->counters(), report.server);
    }
    add_list_counters(report);
    return report;
}

std::uint64_t AtpJob::delivered_bytes() const {
    std::uint64_t acks = report_.worker.acks;
    for (const Endpoint& endpoint : endpoints_) acks += endpoint.worker ? endpoint.worker->counters().acks : 0;
    return acks * shared_.scenario.payload_lanes() * ATP_LANE_BYTES / ranks();
}

std::uint64_t AtpJob::added_at_server() const {
    std::uint64_t added = report_.server.added_here;
    for (const Channel& channel : channels_) added += channel.server ? channel.server->counters().added_here : 0;
    return added;
}

double AtpJob::share_done() const {
    if (finished()) return 1;
    double done = 0;
    for (std::uint32_t id = 0; id < endpoints_.size(); ++id) {
        const Endpoint& endpoint = endpoints_[id];
        double stored = 0;
        double size = 1;
        for (const GradientTensor& tensor : endpoint.tensors) {
            stored += static_cast<double>(tensor.stored());
            size += static_cast<double>(tensor.size());
        }
        const bool in_iteration = training_.waits_for_sums(rank_of(id));
        done += training_.iterations_done(rank_of(id)) + (in_iteration ? stored / size : 0);
    }
    return done / static_cast<double>(endpoints_.size()) / shared_.scenario.iterations;
}

std::string AtpJob::whereabouts() const {
    std::string text = fmt::format("{} incarnations;", report_.incarnations);
    constexpr std::uint32_t shown = 8;
    for (std::uint32_t id = 0; id < std::min<std::uint32_t>(shown, static_cast<std::uint32_t>(endpoints_.size()));
         ++id) {
        const Endpoint& endpoint = endpoints_[id];
        text += fmt::format(" rank {} channel {}: iteration {},", rank_of(id), channel_of(id),
                            training_.iterations_done(rank_of(id)));
        text += endpoint.worker
                    ? fmt::format(" expects seq {} of {};", endpoint.worker->expected(), endpoint.worker->next_seq())
                    : " crashed;";
    }
    for (const Channel& channel : channels_) {
        text += channel.server ? fmt::format(" server at seq {};", channel.server->base()) : " server crashed;";
    }
    return text;
}

// No component sends invalid packets here: every refused packet is an error of the state machines.
void AtpJob::check(const JobReport& job) {
    const auto expect_none = [&](std::string_view what, std::uint64_t count) {
        if (count != 0) Program::fail(fmt::format("job {}: {}: {}", job.job, what, count));
    };
    expect_none("audit failures", job.server.audit_failures);
    expect_none("packets refused by a worker", job.worker.refused);
    expect_none("packets refused by a server", job.server.refused);
    if (job.incarnations > 1) return;
    expect_none("packets of another incarnation at a worker of a job with one incarnation", job.worker.forged);
    expect_none("packets of another incarnation at a server of a job with one incarnation", job.server.forged);
    expect_none("fragments further ahead than a worker can be", job.server.ahead);
    if (!job.finished) return;
    // A fragment with one sender is sent by one worker, and acknowledged to all.
    const bool all_send = shared_.scenario.owned_share == 0;
    if (job.worker.acks < job.worker.sent || (all_send && job.worker.acks != job.worker.sent)) {
        expect_none("fragments sent but not acknowledged", job.worker.sent - job.worker.acks);
    }
    if (job.server.completed * job.workers != job.worker.acks) {
        Program::fail(fmt::format("job {}: {} fragments completed, but {} workers took {} results", job.job,
                                  job.server.completed, job.workers, job.worker.acks));
    }
}

}  // namespace atp::sim
