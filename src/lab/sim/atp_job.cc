// SPDX-License-Identifier: Apache-2.0
#include "sim/atp_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "control/branch.h"
#include "endpoint/channel_text.h"
#include "sim/counters.h"
#include "sim/gradients.h"
#include "sim/tenant_keys.h"
#include "sim/truth.h"

namespace atp::sim {
namespace {

// Time that a launcher takes to start all processes again.
constexpr Duration forming_time = std::chrono::milliseconds(1);
constexpr std::size_t errors_kept = 8;
// Of a bucket in one channel: exponents, votes and numbers.
constexpr std::uint32_t most_parts = 3;
// In the memory of a host.
constexpr std::uint32_t most_chunks = 8;

// Logarithm of the number of slots: at most one slot per aggregator, so that fragments without an aggregator wait.
std::uint8_t slots_within(std::uint32_t aggregators) {
    return static_cast<std::uint8_t>(std::bit_width(aggregators) - 1);
}

}  // namespace

AtpJob::AtpJob(const Shared& shared, ProgramId id, unsigned index)
    : Job(shared, id, shared.scenario.host_cost, index),
      endpoints_(std::size_t{shared.scenario.channels} * ranks()),
      ranks_(ranks()) {
    forming_ = true;
    wake_system_at(report_.started, 0);
}

void AtpJob::fail(const std::string& text) {
    Program::fail(fmt::format("job {}, incarnation {}: {}", name(), report_.incarnations, text));
}

host::RankHost* AtpJob::host_of(const Endpoint& endpoint) const {
    return endpoint.process == no_process ? nullptr : processes().rank(endpoint.process);
}

// ------------------------------------------------------------------------------------------------------ Incarnations

wire::ChannelTerms AtpJob::terms_of(unsigned channel) const {
    const Scenario& scenario = shared_.scenario;
    const std::uint32_t part = scenario.aggregators / scenario.jobs;
    wire::ChannelTerms terms{
        .job = number(),
        .token = token_,
        .channel = static_cast<std::uint16_t>(channel),
        .lanes = scenario.lanes,
        .window_log2 = scenario.partition ? std::min(scenario.window_log2, slots_within(part)) : scenario.window_log2,
        .audit = scenario.audit,
        .aggregators = scenario.aggregators,
        .first_seq = scenario.first_seq,
        .mask1 = site().membership->all_units(),
        .scale = gradient_scale};
    if (site().server_rank) {
        const Endpoint& server = endpoints_[endpoint_of(channel, *site().server_rank)];
        terms.server = control::endpoint_of(processes().address_of(server.process));
    } else if (site().server.exists()) {
        terms.server = control::endpoint_of(processes().switch_address(site().server));
    }
    if (scenario.groups) {
        terms.group = control::endpoint_of(processes().group_address(index_ * scenario.channels + channel));
    }
    if (site().root.exists()) terms.root = control::endpoint_of(processes().switch_address(site().root));
    return terms;
}

endpoint::ChannelMachineConfig AtpJob::config_of(unsigned channel, unsigned rank) {
    const Scenario& scenario = shared_.scenario;
    const protocol::Membership& members = *site().membership;
    const auto rank16 = static_cast<std::uint16_t>(rank);
    const protocol::Place& place = members.place(rank16);
    endpoint::ChannelMachineConfig config;
    config.terms = terms_of(channel);
    config.unit = {.unit = place.unit,
                   .members = 1U << place.member,
                   .mask0 = place.mask0,
                   .direct = members.unit(place.unit).direct,
                   .ranks = {rank16}};
    config.level = site().levels[rank];
    config.switch_address = processes().switch_address(site().entrances[rank]);
    config.membership = site().membership;
    config.nonce = random_.next();
    config.secret = {random_.next(), random_.next()};
    config.key = key_of_job(scenario, index_);
    config.hosts_server = site().server_rank == rank;
    config.has_group = scenario.groups;
    if (site().server_rank) config.server_rank = static_cast<std::uint16_t>(*site().server_rank);
    protocol::WorkerConfig& worker = config.worker;
    worker.channel = endpoint::channel_config(config.terms, processes().indices());
    worker.rank = rank16;
    worker.place = place;
    worker.senders = protocol::SenderMasks(members, rank16);
    worker.scale = gradient_scale;
    worker.congestion.channels = scenario.channels;
    worker.congestion.initial_packets = scenario.initial_packets;
    worker.congestion.most_packets = scenario.most_packets;
    if (!scenario.congestion_control) worker.congestion.least_packets = UINT32_MAX;
    worker.train = scenario.train;
    worker.min_timeout = scenario.min_timeout;
    worker.max_timeout = scenario.max_timeout;
    if (!scenario.reactive) worker.bypass_above = protocol::bounded_magnitude(ranks());
    worker.tensors = std::max(most_chunks, most_parts * static_cast<std::uint32_t>(workload_.buckets.size()));
    return config;
}

// The processes of a job that starts again have other ports, unless packets of the previous incarnation shall reach
// them.
void AtpJob::form(Time now) {
    Time up = now;
    for (const Rank& rank : ranks_) up = std::max(up, rank.up_at);
    if (up > now) return wake_system_at(up, 0);
    ++report_.incarnations;
    broken_ = forming_ = false;
    token_ = random_.between(1, ~std::uint64_t{0});
    if (shared_.trace != nullptr) {
        shared_.trace->note(now, fmt::format("job {}", name()),
                            fmt::format("forms incarnation {} with token {:#x}", report_.incarnations, token_));
    }
    first_iteration_ = shared_.scenario.iterations;
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        first_iteration_ = std::min(first_iteration_, training_.iterations_done(rank));
        ranks_[rank] = Rank{};
    }
    for (std::uint32_t id = 0; id < endpoints_.size(); ++id) {
        const ProcessId before = endpoints_[id].process;
        retire(endpoints_[id]);
        const bool same_port = before != no_process && shared_.scenario.faults.replay > 0;
        endpoints_[id].process = same_port ? before : processes().reserve(site().worker_hosts[rank_of(id)]);
    }
    joining_ = static_cast<unsigned>(endpoints_.size());
    formed_at_ = never;
    const std::uint64_t key = mix64(mix64(shared_.scenario.seed, token_), number());
    tensors_ =
        make_tensors(shared_.scenario, {.key = key, .workers = ranks(), .channels = channels(), .workload = workload_});
    const auto spread = static_cast<std::uint64_t>(shared_.scenario.start_spread.count());
    for (std::uint32_t id = 0; id < endpoints_.size(); ++id) {
        if (spread == 0) {
            start(id, now);
        } else {
            wake_system_at(now + Duration(static_cast<std::int64_t>(random_.below(spread))), start_event(id));
        }
    }
    shared_.network.replay_kept(now);
}

// A process that a fault ended before its start stays so: the job forms again.
void AtpJob::start(std::uint32_t id, Time now) {
    Endpoint& endpoint = endpoints_[id];
    if (endpoint.started || forming_ || ranks_[rank_of(id)].failed) return;
    endpoint.started = true;
    processes().start_rank(endpoint.process, config_of(channel_of(id), rank_of(id)), *this, id, now);
}

// The process ends. Keeps what it counted.
void AtpJob::retire(Endpoint& endpoint) {
    if (const host::RankHost* const host = host_of(endpoint)) {
        add_counters(worker_fields, host->machine().worker().counters(), report_.worker);
        add_counters(server_fields, host->machine().server_counters(), report_.server);
        processes().stop(endpoint.process);
    }
    endpoint.open.clear();
    endpoint.started = false;
}

// All ranks begin together, when the last one is ready: the collective that forms a communicator returns.
void AtpJob::on_ready(std::uint32_t id, Time now) {
    const auto starts_later = [](const Endpoint& endpoint) { return !endpoint.started; };
    if (!broken_ && std::ranges::any_of(endpoints_, starts_later)) {
        fail(fmt::format("rank {} is ready before all processes started", rank_of(id)));
    }
    if (--joining_ != 0) return;
    formed_at_ = now;
    if (report_.incarnations == 1) report_.started = now;
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        begin(rank, first_iteration_, now);
        leave_if_idle(rank, now);
    }
}

// A rank that computes notices a failure when it sums again.
bool AtpJob::goes_on(unsigned rank) const {
    return joining_ == 0 && !ranks_[rank].failed && !ranks_[rank].left && !training_.finished(rank);
}

void AtpJob::form_again_if_over(Time now) {
    if (!broken_ || forming_ || finished() || given_up()) return;
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        if (goes_on(rank)) return;
    }
    if (over_) {
        report_.given_up = true;
        --shared_.unfinished_jobs;
        for (unsigned rank = 0; rank < ranks(); ++rank) leave(rank, now);
        return;
    }
    forming_ = true;
    wake_system_at(now + forming_time, 0);
}

void AtpJob::on_system_event(std::uint32_t event, Time now) {
    event == 0 ? form(now) : start(event - start_event(0), now);
}

void AtpJob::crash_worker(unsigned rank, Duration lasts, Time now) {
    if (finished() || given_up()) return;
    ranks_[rank].up_at = now + lasts;
    if (forming_) return;
    for (unsigned channel = 0; channel < channels(); ++channel) retire(endpoints_[endpoint_of(channel, rank)]);
    if (tensors_ != nullptr) tensors_->forget(rank);
    ranks_[rank].failed = broken_ = true;
    form_again_if_over(now);
}

void AtpJob::crash_server(Duration lasts, Time now) {
    if (site().server_rank) return crash_worker(*site().server_rank, lasts, now);
    processes().crash_switch(site().host_of_server(), lasts, now);
}

bool AtpJob::is_busy(unsigned rank) const {
    for (unsigned channel = 0; channel < channels(); ++channel) {
        if (!endpoints_[endpoint_of(channel, rank)].open.empty()) return true;
    }
    return false;
}

void AtpJob::leave(unsigned rank, Time now) {
    ranks_[rank].left = true;
    for (unsigned channel = 0; channel < channels(); ++channel) {
        const Endpoint& endpoint = endpoints_[endpoint_of(channel, rank)];
        if (host_of(endpoint) == nullptr) continue;
        host_of(endpoint)->close(now);
        processes().drive(endpoint.process, now);
    }
}

void AtpJob::leave_worker(unsigned rank, Time now) {
    if (finished() || given_up()) return;
    over_ = true;
    ranks_[rank].leaves = true;
    leave_if_idle(rank, now);
    form_again_if_over(now);
}

void AtpJob::leave_if_idle(unsigned rank, Time now) {
    const Rank& r = ranks_[rank];
    if (!r.leaves || r.left || r.failed || joining_ != 0 || is_busy(rank)) return;
    broken_ = true;
    leave(rank, now);
}

void AtpJob::check_failed(const Outage& outage) {
    if (formed_at_ >= outage.at) return;
    for (unsigned rank = 0; rank < ranks(); ++rank) {
        const bool is_victim = outage.node == Outage::Node::worker && outage.index == rank;
        if (is_victim && outage.kind < Outage::Kind::cut) continue;
        if (!ranks_[rank].failed && is_busy(rank)) fail(fmt::format("rank {} waits, but its job cannot go on", rank));
    }
}

// -------------------------------------------------------------------------------------------------------- Iterations

void AtpJob::submit(unsigned rank, workload::Training::Buckets buckets, Time now) {
    // Of an incarnation that has ended: continues in the next one, if at all.
    if (forming_ || joining_ != 0 || ranks_[rank].failed || ranks_[rank].left) return;
    for (std::uint32_t bucket = buckets.first; bucket < buckets.last; ++bucket) {
        tensors_->begin(rank, training_.iterations_done(rank), bucket);
        submit_parts(rank, now);
    }
    drive_channels(rank, now);
}

void AtpJob::submit_parts(unsigned rank, Time now) {
    const std::optional<Duration> deadline = shared_.scenario.effective_deadline();
    while (const auto part = tensors_->poll_part(rank)) {
        Endpoint& endpoint = endpoints_[endpoint_of(part->channel, rank)];
        endpoint.open.push_back(part->number);
        ranks_[rank].has_new_parts = true;
        if (!host_of(endpoint)->submit(*part->tensor, now, deadline ? now + *deadline : never)) {
            fail(fmt::format("rank {}: part {} was refused", rank, part->number));
        }
    }
}

void AtpJob::drive_channels(unsigned rank, Time now) {
    ranks_[rank].has_new_parts = false;
    for (unsigned channel = 0; channel < channels(); ++channel) {
        const Endpoint& endpoint = endpoints_[endpoint_of(channel, rank)];
        if (host_of(endpoint) != nullptr) processes().drive(endpoint.process, now);
    }
}

// What one channel received may be what another one waits for.
void AtpJob::on_driven(std::uint32_t id, Time now) {
    const unsigned rank = rank_of(id);
    if (tensors_->take_progress(rank) || ranks_[rank].has_new_parts) drive_channels(rank, now);
}

void AtpJob::on_rank_event(std::uint32_t id, const endpoint::ChannelEvent& event, Time now) {
    using Kind = endpoint::ChannelEvent::Kind;
    switch (event.kind) {
        case Kind::ready: on_ready(id, now); break;
        case Kind::completed: on_completed(id, now); break;
        case Kind::failed: on_failed(id, event.cause, now); break;
        case Kind::closed: host_of(endpoints_[id])->end(); break;
        case Kind::differs: fail(fmt::format("rank {}: operations differ", rank_of(id))); break;
        default: break;
    }
}

void AtpJob::on_completed(std::uint32_t id, Time now) {
    Endpoint& endpoint = endpoints_[id];
    const unsigned rank = rank_of(id);
    const std::uint64_t part = endpoint.open.front();
    endpoint.open.pop_front();
    tensors_->finish(rank, part);
    submit_parts(rank, now);
    while (const auto bucket = tensors_->poll_summed(rank)) {
        if (const std::string objection = tensors_->objection(rank, *bucket); !objection.empty()) {
            fail(fmt::format("rank {}: {}", rank, objection));
        }
        summed(rank, *bucket, now);
    }
    if (finished()) {
        for (unsigned each = 0; each < ranks(); ++each) leave(each, now);
        return;
    }
    leave_if_idle(rank, now);
    if (broken_) form_again_if_over(now);
}

// A rank that reads an error in one channel leaves all of them.
void AtpJob::on_failed(std::uint32_t id, const endpoint::ChannelCause& cause, Time now) {
    const unsigned rank = rank_of(id);
    if (const auto* operation = std::get_if<endpoint::OperationCause>(&cause)) {
        if (operation->event.kind == protocol::WorkerEvent::Kind::timed_out) check_deadline(rank, operation->event);
    }
    if (std::exchange(ranks_[rank].failed, true)) return;
    broken_ = true;
    ++report_.failed_ranks;
    const Error error = endpoint::error_of(cause, host_of(endpoints_[id])->config());
    if (const auto objection = shared_.truth.objection_to(index_, rank, error, now)) {
        fail(fmt::format("at {:.0f} ms rank {} names {}, but {}: {}", to_milliseconds(now.time_since_epoch()), rank,
                         error.peer.empty() ? "no peer" : error.peer, *objection, to_string(error)));
    }
    if (report_.errors.size() < errors_kept) {
        report_.errors.push_back(fmt::format("job {} incarnation {} rank {} channel {}: {}", name(),
                                             report_.incarnations, rank, channel_of(id), to_string(error)));
    }
    for (unsigned channel = 0; channel < channels(); ++channel) {
        const Endpoint& other = endpoints_[endpoint_of(channel, rank)];
        if (channel == channel_of(id) || host_of(other) == nullptr) continue;
        host_of(other)->end();
        processes().drive(other.process, now);
    }
    form_again_if_over(now);
}

void AtpJob::check_deadline(unsigned rank, const protocol::WorkerEvent& event) {
    const Scenario& scenario = shared_.scenario;
    ++report_.timed_out;
    const std::optional<Duration> deadline = scenario.effective_deadline();
    Duration paused{};
    for (const Outage& outage : scenario.faults.outages) {
        if (outage.kind == Outage::Kind::pause) paused += outage.lasts;
    }
    if (deadline && event.elapsed <= *deadline + paused) return;
    fail(fmt::format("rank {}: an operation timed out after {:.3f} ms, later than its deadline or without a deadline",
                     rank, to_milliseconds(event.elapsed)));
}

}  // namespace atp::sim
