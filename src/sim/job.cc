// SPDX-License-Identifier: Apache-2.0
#include "sim/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/counters.h"

namespace atp::sim {
namespace {

constexpr std::uint64_t random_stream = 0x70b5;
// Workers of a job start an iteration about together, never at the same instant.
constexpr Duration start_jitter = std::chrono::microseconds(1);
// How long the survivors take to agree on the next incarnation.
constexpr Duration forming_time = std::chrono::milliseconds(1);
constexpr std::size_t errors_kept = 8;

double milliseconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

}  // namespace

Job::Job(const Shared& shared, ProgramId id, unsigned index, const Site& site)
    : Program(shared, id),
      index_(index),
      site_(site),
      rank_at_(shared.fabric.nodes.size(), -1),
      random_(shared.scenario.seed, random_stream + index),
      channels_(shared.scenario.channels),
      endpoints_(std::size_t{shared.scenario.channels} * site.membership.workers()),
      ranks_(site.membership.workers()) {
    report_.job = number();
    report_.workers = site.membership.workers();
    report_.started = Time(index * shared.scenario.stagger);
    report_.tensor_bytes = shared.scenario.iterations * shared.scenario.bytes / sizeof(float) * sizeof(float);
    for (unsigned rank = 0; rank < report_.workers; ++rank) {
        rank_at_[site.worker_hosts[rank]] = static_cast<std::int32_t>(rank);
    }
    wake_at(report_.started, form_event());
}

void Job::fail(std::string text) {
    Program::fail(fmt::format("job {}, incarnation {}: {}", number(), report_.incarnations, text));
}

// ------------------------------------------------------------------------------------------------------ Incarnations

protocol::ChannelConfig Job::channel_config(unsigned channel) const {
    const Scenario& s = shared_.scenario;
    return {.job = number(),
            .token = token_,
            .channel = static_cast<std::uint16_t>(channel),
            .lanes = s.lanes,
            .window_log2 = s.window_log2,
            .audit = s.audit,
            .aggregators = s.aggregators,
            .first_seq = s.first_seq};
}

void Job::form(Time now) {
    ++report_.incarnations;
    broken_ = forming_ = false;
    token_ = static_cast<std::uint32_t>(random_.between(1, 0xffffffffU));
    if (shared_.trace != nullptr) {
        shared_.trace->note(now, fmt::format("job {}", number()),
                            fmt::format("forms incarnation {} with token {:#x}", report_.incarnations, token_));
    }
    first_iteration_ = shared_.scenario.iterations;
    for (const Rank& rank : ranks_) first_iteration_ = std::min(first_iteration_, rank.iterations_done);
    admit_everywhere();
    for (unsigned channel = 0; channel < channels_.size(); ++channel) form_channel(channel);
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank] = Rank{.iterations_done = first_iteration_};
        const auto jitter =
            Duration(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(start_jitter.count()))));
        wake_at(now + jitter, resume_event(rank));
    }
    shared_.network.replay_kept(now);
}

void Job::admit_everywhere() {
    for (NodeId s = 0; s < shared_.switches.size(); ++s) {
        if (site_.levels[s] < 0) continue;
        shared_.switches[s].dismiss(number());
        if (!shared_.switches[s].admit(number(), token_, static_cast<std::uint8_t>(site_.levels[s]))) {
            fail(fmt::format("switch s{} did not admit it", s));
        }
    }
}

void Job::form_channel(unsigned channel) {
    const Scenario& s = shared_.scenario;
    Channel& c = channels_[channel];
    retire(c);
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) retire(endpoints_[endpoint_of(channel, rank)]);
    c.source =
        std::make_unique<GradientSource>(GradientShape{.key = mix64(mix64(s.seed, token_), mix64(number(), channel)),
                                                       .workers = site_.membership.workers(),
                                                       .payload_lanes = s.payload_lanes(),
                                                       .window = 1U << s.window_log2,
                                                       .float_share = s.float_share,
                                                       .overflow_share = s.overflow_share,
                                                       .plain_share = s.plain_share});
    // A worker asks no more often than this, so whoever asks is answered.
    c.server.emplace(
        protocol::ServerConfig{
            .channel = channel_config(channel), .scale = gradient_scale, .repeat_interval = s.min_timeout},
        site_.membership);
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) form_worker(channel, rank);
}

void Job::form_worker(unsigned channel, unsigned rank) {
    const Scenario& s = shared_.scenario;
    Endpoint& endpoint = endpoints_[endpoint_of(channel, rank)];
    protocol::WorkerConfig config;
    config.channel = channel_config(channel);
    config.rank = static_cast<std::uint16_t>(rank);
    config.place = site_.membership.place(config.rank);
    config.congestion.initial_packets = s.initial_packets;
    config.congestion.halve = s.congestion_control;
    config.min_timeout = s.min_timeout;
    config.max_timeout = s.max_timeout;
    config.tensors = s.tensors;
    endpoint.worker.emplace(config);
}

// Keeps what the machine counted, and ends it.
void Job::retire(Endpoint& endpoint) {
    if (endpoint.worker) add_counters(worker_fields, endpoint.worker->counters(), report_.worker);
    endpoint = Endpoint{};
}

void Job::retire(Channel& channel) {
    if (channel.server) add_counters(server_fields, channel.server->counters(), report_.server);
    channel.server.reset();
}

bool Job::gave_up_or_done(unsigned rank) const {
    if (ranks_[rank].iterations_done == shared_.scenario.iterations) return true;
    bool failed = true;
    for (unsigned channel = 0; channel < channels_.size(); ++channel) {
        const Endpoint& endpoint = endpoints_[endpoint_of(channel, rank)];
        // A channel that is through with its part of the iteration waits for the failed ones.
        failed &= !endpoint.worker || endpoint.failed || (endpoint.open == 0 && ranks_[rank].open_channels != 0);
    }
    return failed;
}

void Job::form_again_if_over(Time now) {
    if (!broken_ || forming_ || finished()) return;
    Time ready = std::max(now, server_up_at_);
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
        if (!gave_up_or_done(rank)) return;
        ready = std::max(ready, ranks_[rank].up_at);
    }
    forming_ = true;
    wake_at(ready + forming_time, form_event());
}

void Job::crash_worker(unsigned rank, Duration lasts, Time now) {
    if (finished() || report_.incarnations == 0 || forming_) return;
    for (unsigned channel = 0; channel < channels_.size(); ++channel) retire(endpoints_[endpoint_of(channel, rank)]);
    ranks_[rank].up_at = now + lasts;
    broken_ = true;
    form_again_if_over(now);
}

void Job::crash_server(Duration lasts, Time now) {
    if (finished() || report_.incarnations == 0 || forming_) return;
    for (Channel& channel : channels_) retire(channel);
    server_up_at_ = now + lasts;
    broken_ = true;
    form_again_if_over(now);
}

// -------------------------------------------------------------------------------------------------------- Iterations

void Job::resume(unsigned rank, Time now) {
    // The event of a rank that crashed, or of an incarnation that ended meanwhile.
    if (finished() || forming_ || ranks_[rank].open_channels != 0) return;
    if (!endpoints_[endpoint_of(0, rank)].worker) return;
    begin_iteration(rank, now);
}

void Job::begin_iteration(unsigned rank, Time now) {
    const Scenario& s = shared_.scenario;
    Rank& r = ranks_[rank];
    if (r.iterations_done == s.iterations) return;
    const std::optional<Duration> deadline = s.effective_deadline();
    r.open_channels = s.channels;
    for (unsigned channel = 0; channel < s.channels; ++channel) {
        Endpoint& endpoint = endpoints_[endpoint_of(channel, rank)];
        endpoint.tensors.clear();
        endpoint.open = s.tensors;
        for (unsigned t = 0; t < s.tensors; ++t) {
            endpoint.tensors.emplace_back(*channels_[channel].source, rank,
                                          std::uint64_t{r.iterations_done} * s.tensors + t, s.elements(t, channel));
        }
        endpoint.first_tensor = std::uint64_t{r.iterations_done - first_iteration_} * s.tensors;
        for (unsigned t = 0; t < s.tensors; ++t) {
            const auto number = endpoint.worker->submit(endpoint.tensors[t], now, deadline ? now + *deadline : never);
            if (number != endpoint.first_tensor + t) fail(fmt::format("rank {}: tensor {} was refused", rank, t));
        }
    }
    for (unsigned channel = 0; channel < s.channels; ++channel) drive(endpoint_of(channel, rank), now);
}

void Job::on_completed(std::uint32_t id, std::uint64_t number, Time now) {
    const Scenario& s = shared_.scenario;
    Endpoint& endpoint = endpoints_[id];
    Rank& rank = ranks_[rank_of(id)];
    const GradientTensor& tensor = endpoint.tensors[number - endpoint.first_tensor];
    if (!tensor.right()) {
        fail(fmt::format("rank {} channel {}: wrong sum, {} of {} elements delivered; {}", rank_of(id), channel_of(id),
                         tensor.stored(), tensor.size(), channels_[channel_of(id)].source->mismatch()));
    }
    if (--endpoint.open != 0 || --rank.open_channels != 0) return;
    if (++rank.iterations_done == s.iterations) {
        if (all_done()) report_.finished = now;
        return;
    }
    wake_at(now + s.pause, resume_event(rank_of(id)));
}

bool Job::all_done() const {
    return std::ranges::all_of(ranks_,
                               [&](const Rank& rank) { return rank.iterations_done == shared_.scenario.iterations; });
}

// Every failure is typed, names what is known of the culprit, and comes when the deadline passes: not before, not late.
void Job::on_timed_out(std::uint32_t id, const protocol::WorkerEvent& event) {
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
        fail(fmt::format("rank {}: tensor {} timed out after {:.3f} ms without a deadline of that length", rank_of(id),
                         event.tensor, milliseconds(event.elapsed)));
    }
    if (report_.errors.size() == errors_kept) return;
    const std::string heard =
        event.server_heard ? fmt::format("server last heard at {:.3f} ms", milliseconds(event.heard.time_since_epoch()))
                           : "server never heard";
    report_.errors.push_back(
        fmt::format("job {} incarnation {} rank {} channel {}: tensor {} timed out after {:.3f} ms; {}; missing units "
                    "{:#x} members {:#x}",
                    number(), report_.incarnations, rank_of(id), channel_of(id), event.tensor,
                    milliseconds(event.elapsed), heard, event.missing_units, event.missing_members));
}

// ---------------------------------------------------------------------------------------------------------- Machines

void Job::wake(std::uint32_t event, Time now) {
    if (event == form_event()) {
        form(now);
    } else if (event >= resume_event(0)) {
        resume(event - resume_event(0), now);
    } else {
        on_timer(event, now);
    }
}

NodeId Job::node_of(std::uint32_t event) const {
    if (event == form_event()) return no_node;
    return host_of_endpoint(event);  // ranks repeat from channel to channel, and so they do among the ends
}

void Job::deliver_to_worker(unsigned channel, unsigned rank, const Arrival& arrival, Time now) {
    if (channel >= channels_.size()) return;
    const std::uint32_t id = endpoint_of(channel, rank);
    if (!endpoints_[id].worker) return;
    endpoints_[id].worker->handle_packet(shared_.network.pool().bytes(arrival.packet), arrival.congested, now);
    drive(id, now);
}

void Job::deliver_to_server(unsigned channel, const Arrival& arrival, Time now) {
    if (channel >= channels_.size() || !channels_[channel].server) return;
    ++report_.server_packets;
    const std::span<std::byte> packet = shared_.network.pool().bytes(arrival.packet);
    report_.server_bytes += packet.size();
    channels_[channel].server->handle_packet(packet, arrival.congested, now);
    drive_server(channels_[channel], now);
}

void Job::drive_server(Channel& channel, Time now) {
    PacketPool& pool = shared_.network.pool();
    while (channel.server->has_transmit()) {
        const PacketId packet = pool.allocate(id_);
        const auto transmit = channel.server->poll_transmit(pool.room(packet));
        if (!transmit) {
            pool.release(packet);
            return;
        }
        pool.resize(packet, transmit->size);
        shared_.network.send(site_.up[site_.server_host], packet, false, now);
    }
}

void Job::drive(std::uint32_t id, Time now) {
    PacketPool& pool = shared_.network.pool();
    Endpoint& endpoint = endpoints_[id];
    const LinkId uplink = site_.up[host_of_endpoint(id)];
    while (true) {
        const PacketId packet = pool.allocate(id_);
        const auto size = endpoint.worker->poll_transmit(pool.room(packet), now);
        if (!size) {
            pool.release(packet);
            break;
        }
        pool.resize(packet, *size);
        shared_.network.send(uplink, packet, false, now);
    }
    while (const auto event = endpoint.worker->poll_event()) on_event(id, *event, now);
    if (broken_) form_again_if_over(now);
    set_timer(id);
}

void Job::on_event(std::uint32_t id, const protocol::WorkerEvent& event, Time now) {
    if (event.kind == protocol::WorkerEvent::Kind::completed) {
        on_completed(id, event.tensor, now);
    } else {
        on_timed_out(id, event);
    }
}

// Deadlines mostly move later with every ACK: an event that comes too early looks again, so that most moves cost
// nothing.
void Job::set_timer(std::uint32_t id) {
    Endpoint& endpoint = endpoints_[id];
    const Time wanted = endpoint.worker->poll_timeout();
    if (wanted >= endpoint.wake_at) return;
    endpoint.wake_at = wanted;
    wake_at(wanted, id);
}

void Job::on_timer(std::uint32_t id, Time now) {
    Endpoint& endpoint = endpoints_[id];
    if (endpoint.wake_at > now) return;  // an earlier incarnation's, or one that an earlier event has overtaken
    endpoint.wake_at = never;
    if (!endpoint.worker) return;
    if (endpoint.worker->poll_timeout() > now) {
        set_timer(id);
        return;
    }
    endpoint.worker->handle_timeout(now);
    drive(id, now);
}

JobReport Job::report() const {
    JobReport report = report_;
    for (const Endpoint& endpoint : endpoints_) {
        if (endpoint.worker) add_counters(worker_fields, endpoint.worker->counters(), report.worker);
    }
    for (const Channel& channel : channels_) {
        if (channel.server) add_counters(server_fields, channel.server->counters(), report.server);
    }
    return report;
}

double Job::share_done() const {
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
        const bool in_iteration = ranks_[rank_of(id)].open_channels != 0;
        done += ranks_[rank_of(id)].iterations_done + (in_iteration ? stored / size : 0);
    }
    return done / static_cast<double>(endpoints_.size()) / shared_.scenario.iterations;
}

std::string Job::whereabouts() const {
    std::string text = fmt::format("{} incarnations;", report_.incarnations);
    constexpr std::uint32_t shown = 8;
    for (std::uint32_t id = 0; id < std::min<std::uint32_t>(shown, static_cast<std::uint32_t>(endpoints_.size()));
         ++id) {
        const Endpoint& endpoint = endpoints_[id];
        text += fmt::format(" rank {} channel {}: iteration {},", rank_of(id), channel_of(id),
                            ranks_[rank_of(id)].iterations_done);
        text += endpoint.worker
                    ? fmt::format(" expects seq {} of {};", endpoint.worker->expected(), endpoint.worker->next_seq())
                    : " crashed;";
    }
    for (const Channel& channel : channels_) {
        text += channel.server ? fmt::format(" server at seq {};", channel.server->base()) : " server crashed;";
    }
    return text;
}

}  // namespace atp::sim
