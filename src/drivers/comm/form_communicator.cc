// SPDX-License-Identifier: Apache-2.0
// How a communicator forms: on one host, over the network, or both.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "comm/communicator.h"
#include "comm/formation.h"
#include "comm/host_formation.h"
#include "comm/job_name.h"
#include "comm/option_table.h"
#include "control/formation_rounds.h"
#include "control/layout.h"
#include "crypto/tenant_key.h"
#include "keys/key_file.h"
#include "net/affinity.h"
#include "net/clock.h"
#include "observe/traced_transport.h"

namespace atp::comm {
namespace {

// Pauses between two checks of the store while a channel waits for the other ranks. Rank 0, which may serve the store,
// leaves a second after a failure.
constexpr Duration first_look = std::chrono::milliseconds(250);
constexpr Duration longest_pause = std::chrono::milliseconds(500);

std::optional<std::string> problem_of(std::uint32_t rank, std::uint32_t world, const Options& options) {
    if (world == 0 || world > ATP_BITMAP_BITS * ATP_BITMAP_BITS) {
        // errors.md, calls, malformed
        return fmt::format("world is {} ranks; use 1 to {}", world, ATP_BITMAP_BITS * ATP_BITMAP_BITS);
    }
    // errors.md, calls, malformed
    if (rank >= world) return fmt::format("rank {} is out of range; a world of {} ranks counts from 0", rank, world);
    return option_problem(options);
}

// nullopt: the rank has none.
Result<std::optional<crypto::TenantKey>> key_of(const Options& options) {
    auto key = keys::read_key_of_ranks(options.key_file);
    if (!key || *key || options.seal == Seal::none) return key;
    return fail(Operation::open, Reason::malformed, {},
                // errors.md, forms, malformed: without a key, ranks can prove nothing
                fmt::format("seal={} needs a key: name the team's key file (ATP_KEY_FILE)",
                            option_text(options, *find_option("seal"))));
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::form(store::Store& store, std::uint32_t rank, std::uint32_t world,
                                                         const Options& options) {
    if (const auto problem = problem_of(rank, world, options)) {
        return fail(Operation::rendezvous, Reason::malformed, {}, *problem);
    }
    std::unique_ptr<Communicator> communicator(new Communicator(rank, world, options));
    const Time deadline = net::after(net::now(), options.join_timeout);
    const auto key = key_of(options);
    store::Rendezvous rendezvous(
        store, {.prefix = options.name, .generation = options.generation, .rank = rank, .world = world},
        key.value_or(std::nullopt));
    if (key && *key) communicator->join_key_ = std::make_shared<const crypto::TenantKey>(**key);
    auto done = key ? communicator->set_up(rendezvous, deadline) : tl::unexpected(key.error());
    if (!done) {
        communicator->log_failure(done.error());
        rendezvous.give_up(done.error(), control::formation_rounds);
        return tl::unexpected(done.error());
    }
    communicator->options_.use_network = {};  // borrows from the caller
    communicator->log_ready();
    communicator->show_metrics();
    return communicator;
}

Result<void> Communicator::set_up(store::Rendezvous& rendezvous, Time deadline) {
    auto meeting = meet(rendezvous, options_, deadline);
    if (!meeting) return tl::unexpected(meeting.error());
    formation_.job = meeting->facts.front().job;
    prepare_seal(rendezvous, *meeting);
    if (auto shared = share_memory(rendezvous, *meeting, deadline); !shared) return shared;
    if (meeting->groups.ranks.size() == 1 && meeting->shared.memory != nullptr) {
        formation_ = {.job = formation_.job, .on_host = true, .host_ranks = world_, .layout = "memory"};
        start_host(*meeting, std::nullopt);
        return {};
    }
    log_->write(observe::LogEvent::shared_memory_unavailable, {{"rank", rank_}, {"reason", meeting->groups.why_apart}});
    if (auto traced = open_trace(); !traced) return traced;
    if (auto ready = prepare_network(rendezvous, meeting->facts.front(), options_, deadline); !ready) return ready;
    return set_up_over_network(rendezvous, *meeting, deadline);
}

void Communicator::show_metrics() {
    metrics_ = std::make_unique<MetricsEntry>(MeasuredRank{.job = formation_.job.value_or(0),
                                                           .job_name = job_name_of(options_),
                                                           .group = printable(options_.name),
                                                           .rank = rank_,
                                                           .world = world_,
                                                           .layout = formation_.layout,
                                                           .counters = [this] { return rank_counters(); },
                                                           .has_failed = [this] { return failed_.load(); }});
}

Result<void> Communicator::open_trace() {
    const char* const variable = std::getenv("ATP_TRACE");
    const std::string pattern = !options_.trace.empty() || variable == nullptr ? options_.trace : variable;
    if (pattern.empty()) return {};
    auto trace = observe::TraceFile::shared({.path = observe::trace_path(pattern, rank_)}, log_);
    if (!trace) return tl::unexpected(trace.error());
    trace_ = *std::move(trace);
    return {};
}

void Communicator::start_host(Meeting& meeting, std::optional<HostNetwork> network) {
    const auto cores = net::allowed_cores();
    const bool spins = !network && cores && world_ <= cores->size();
    const auto ended = [this](const Error& error) {
        log_failure(error);
        channels_.abort(error);
    };
    host_ = HostDriver::start({.memory = std::move(meeting.shared.memory),
                               .link = std::move(meeting.shared.link),
                               .ranks = meeting.groups.ranks[meeting.groups.host_of(rank_)],
                               .network = std::move(network),
                               .scale = options_.scale,
                               .spins = spins,
                               .ended = ended});
}

Result<void> Communicator::set_up_over_network(store::Rendezvous& rendezvous, Meeting& meeting, Time deadline) {
    const control::HostGroups& groups = meeting.groups;
    const std::vector<std::uint16_t>& own_host = groups.ranks[groups.host_of(rank_)];
    const std::vector<std::uint32_t> speaker{own_host.front()};
    if (speaker.front() == rank_) {
        const auto opened = open_channels(rendezvous, meeting, deadline);
        if (!opened) return tl::unexpected(opened.error());
        adopt(*opened);
        if (own_host.size() > 1) {
            if (auto left = rendezvous.announce_message(control::round_plan, *opened); !left) return left;
        }
    } else {
        const auto plans =
            rendezvous.collect_messages(control::round_plan, speaker, deadline, wire::decode<wire::JobPlan>);
        if (!plans) return tl::unexpected(plans.error());
        adopt(plans->front());
    }
    if (groups.any_shared()) share_network(meeting);
    return {};
}

void Communicator::adopt(const wire::JobPlan& plan) {
    formation_ = {.job = plan.job,
                  .channels = plan.channels,
                  .lanes = plan.lanes,
                  .window = plan.window,
                  .aggregators = plan.aggregators,
                  .units = plan.units,
                  .levels = plan.levels,
                  .layout = std::string(control::to_string(static_cast<control::LayoutKind>(plan.layout)))};
}

// Some hosts have several ranks, of which one speaks for all.
void Communicator::share_network(Meeting& meeting) {
    const auto& hosts = meeting.groups.ranks;
    formation_.host_ranks = static_cast<std::uint32_t>(hosts[meeting.groups.host_of(rank_)].size());
    chunks_ = tensor::ChunkRules{
        .payload_lanes = payload_lanes(), .channels = formation_.channels, .most_lanes = meeting.chunk_lanes};
    members_.resize(world_);
    for (std::size_t member = 0; member < hosts.size(); ++member) {
        for (const std::uint16_t rank : hosts[member]) members_[rank] = static_cast<std::uint16_t>(member);
    }
    if (meeting.shared.memory == nullptr) return;
    HostNetwork network{.chunks = *chunks_};
    if (!channels_.empty()) {
        network.send = [this](const Handle& work, std::uint64_t chunk) {
            if (channels_.size() > 1) work->on_failure([this](const Error& error) { end_channels(error); });
            ChannelDriver& channel = *channels_.channels()[chunk % channels_.size()];
            channel.submit(work, 0);
            channel.wake();
        };
    }
    start_host(meeting, std::move(network));
}

Result<wire::JobPlan> Communicator::open_channels(store::Rendezvous& rendezvous, const Meeting& meeting,
                                                  Time deadline) {
    auto formed = form_over_network(rendezvous, options_, meeting, join_key_, deadline);
    if (!formed) return tl::unexpected(formed.error());
    nodes_ = std::move(formed->nodes);
    log_->write(observe::LogEvent::layout_chosen, {{"rank", rank_}, {"reason", formed->layout}});
    for (std::size_t i = 0; i < formed->channels.size(); ++i) {
        auto& socket = formed->sockets[i];
        if (trace_ != nullptr) socket = observe::trace_transport(std::move(socket), trace_);
        formed->channels[i].hooks = {
            .ended = [this](const Error& error) { log_failure(error); },
            .slow = [this](const std::string& text) { log_slow(text); },
            .floats = [this](const protocol::WorkerCounters& counters) { log_floats(counters); },
            .int32_lanes = [this] { log_int32_lanes(); }};
    }
    const std::span plans(formed->channels);
    const std::span sockets(formed->sockets);
    for (const bool gathers : {false, true}) {
        const std::size_t first = gathers ? formed->plan.channels : 0;
        const std::size_t count = gathers ? plans.size() - first : formed->plan.channels;
        ChannelSet& set = gathers ? gathers_ : channels_;
        if (auto opened = set.open(sockets.subspan(first, count), plans.subspan(first, count)); !opened)
            return tl::unexpected(opened.error());
    }
    channels_.start();
    const Time begin = net::now();
    for (const auto& channel : channels_.channels()) {
        if (auto ready = wait_ready(*channel, rendezvous, begin, deadline); !ready)
            return tl::unexpected(ready.error());
    }
    return formed->plan;
}

// A rank that cannot join leaves its reason in the store. Check the store at intervals while ranks are missing.
Result<void> Communicator::wait_ready(ChannelDriver& channel, store::Rendezvous& rendezvous, Time begin,
                                      Time deadline) const {
    for (Duration pause = first_look;; pause = std::min(2 * pause, longest_pause)) {
        const Time until = std::min(deadline, net::after(net::now(), pause));
        auto ready = channel.wait_ready(until);
        if (ready || ready.error().reason != Reason::timed_out || net::now() < until) return ready;
        if (world_ > 1) {
            if (auto notified = rendezvous.given_up()) {
                notified->value().elapsed = net::now() - begin;
                return *std::move(notified);
            }
        }
        if (net::now() < deadline) continue;
        ready.error().elapsed = net::now() - begin;
        return ready;
    }
}

}  // namespace atp::comm
