// SPDX-License-Identifier: Apache-2.0
// How a communicator forms: on one host, over the network, or both.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "comm/communicator.h"
#include "comm/formation.h"
#include "comm/host_formation.h"
#include "comm/option_table.h"
#include "net/affinity.h"
#include "net/clock.h"
#include "observe/traced_transport.h"

namespace atp::comm {
namespace {

// The ranks that speak for their hosts meet under a name of their own.
constexpr std::string_view speakers_suffix = ".hosts";
// Pauses between two checks of the store while a channel waits for the other ranks.
constexpr Duration first_look = std::chrono::milliseconds(250);
constexpr Duration longest_pause = std::chrono::seconds(2);

bool finds_hosts(std::uint32_t world, const Options& options) { return world > 1 && may_share(options); }

std::optional<std::string> problem_of(std::uint32_t rank, std::uint32_t world, const Options& options) {
    if (world == 0 || world > ATP_BITMAP_BITS * ATP_BITMAP_BITS) {
        return fmt::format("world is {} ranks; use 1 to {}", world, ATP_BITMAP_BITS * ATP_BITMAP_BITS);
    }
    if (rank >= world) return fmt::format("rank {} is out of range; a world of {} ranks counts from 0", rank, world);
    return option_problem(options);
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::form(store::Store& store, std::uint32_t rank, std::uint32_t world,
                                                         const Options& options) {
    auto on_host = form_on_host(store, rank, world, options);
    if (!on_host || *on_host != nullptr) return on_host;
    return form_over_network(store, rank, world, options);
}

Result<std::unique_ptr<Communicator>> Communicator::form_on_host(store::Store& store, std::uint32_t rank,
                                                                 std::uint32_t world, const Options& options) {
    if (const auto problem = problem_of(rank, world, options)) {
        return fail(Operation::rendezvous, Reason::malformed, {}, *problem);
    }
    std::unique_ptr<Communicator> communicator(new Communicator(rank, world, options));
    auto done = communicator->set_up(store, names_of_formation(), [&](store::Rendezvous& rendezvous, Time deadline) {
        return communicator->set_up_on_host(rendezvous, deadline);
    });
    if (!done) return tl::unexpected(done.error());
    if (communicator->host_ == nullptr) communicator.reset();
    return communicator;
}

Result<std::unique_ptr<Communicator>> Communicator::form_over_network(store::Store& store, std::uint32_t rank,
                                                                      std::uint32_t world, const Options& options) {
    if (const auto problem = problem_of(rank, world, options)) {
        return fail(Operation::rendezvous, Reason::malformed, {}, *problem);
    }
    std::unique_ptr<Communicator> communicator(new Communicator(rank, world, options));
    const auto names = finds_hosts(world, options) ? names_of_members_and_network() : names_of_network();
    auto done = communicator->set_up(store, names, [&](store::Rendezvous& rendezvous, Time deadline) {
        auto traced = communicator->open_trace();
        return traced ? communicator->set_up_over_network(store, rendezvous, deadline) : traced;
    });
    if (!done) return tl::unexpected(done.error());
    return communicator;
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

template <class Part>
Result<void> Communicator::set_up(store::Store& store, std::span<const std::string_view> names, const Part& part) {
    const Time deadline = net::after(net::now(), options_.join_timeout);
    store::Rendezvous rendezvous(
        store, {.prefix = options_.name, .generation = options_.generation, .rank = rank_, .world = world_});
    const auto done = part(rendezvous, deadline);
    if (!done) {
        log_failure(done.error());
        rendezvous.give_up(done.error(), names);
    } else if (host_ != nullptr || !channels_.empty()) {
        log_ready();
    }
    return done;
}

Result<void> Communicator::set_up_on_host(store::Rendezvous& rendezvous, Time deadline) {
    auto hosts = find_hosts(rendezvous, names_of_host_level(), options_, true, deadline);
    if (!hosts) return tl::unexpected(hosts.error());
    if (hosts->ranks.size() != 1 || hosts->shared.memory == nullptr) {
        log_->write(observe::LogEvent::memory_apart, {{"rank", rank_}, {"reason", hosts->why_apart}});
        return {};
    }
    formation_ = {.job = 0, .on_host = true, .host_ranks = world_, .layout = "memory"};
    start_host(*hosts, std::nullopt);
    return {};
}

void Communicator::start_host(Hosts& hosts, std::optional<HostNetwork> network) {
    const auto cores = net::allowed_cores();
    const bool spins = !network && cores && world_ <= cores->size();
    std::function<void(const Error&)> ended = [this](const Error& error) { log_failure(error); };
    if (network) {
        ended = [this](const Error& error) {
            log_failure(error);
            channels_.abort(error);
        };
    }
    host_ = HostDriver::start({.memory = std::move(hosts.shared.memory),
                               .link = std::move(hosts.shared.link),
                               .ranks = hosts.own_ranks(),
                               .network = std::move(network),
                               .scale = options_.scale,
                               .spins = spins,
                               .ended = std::move(ended)});
}

Result<void> Communicator::set_up_over_network(store::Store& store, store::Rendezvous& rendezvous, Time deadline) {
    const auto names = names_of_members();
    Hosts hosts;
    if (finds_hosts(world_, options_)) {
        auto found = find_hosts(rendezvous, names, options_, false, deadline);
        if (!found) return tl::unexpected(found.error());
        hosts = *std::move(found);
        if (!hosts.why_apart.empty()) {
            log_->write(observe::LogEvent::memory_apart, {{"rank", rank_}, {"reason", hosts.why_apart}});
        }
    }
    if (!hosts.any_shared()) return open_channels(rendezvous, {}, deadline);
    const auto host = static_cast<std::uint32_t>(hosts.own);
    if (hosts.own_ranks().front() == rank_) {
        std::vector<std::uint32_t> numbers;
        for (const auto& ranks : hosts.ranks) numbers.push_back(ranks.front());
        store::Rendezvous speakers(store, {.prefix = options_.name + std::string(speakers_suffix),
                                           .generation = options_.generation,
                                           .rank = host,
                                           .world = static_cast<std::uint32_t>(hosts.ranks.size()),
                                           .numbers = std::move(numbers)});
        if (auto opened = open_channels(speakers, hosts, deadline); !opened) {
            speakers.give_up(opened.error(), names_of_network());
            return opened;
        }
    }
    auto formed = spread_formation(rendezvous, names.back(), formation_, hosts.own_ranks().front(), deadline);
    if (!formed) return tl::unexpected(formed.error());
    formation_ = *formed;
    formation_.host_ranks = static_cast<std::uint32_t>(hosts.own_ranks().size());
    chunks_ = tensor::ChunkRules{
        .payload_lanes = payload_lanes(), .channels = formation_.channels, .most_lanes = hosts.chunk_lanes};
    members_.resize(world_);
    for (std::size_t member = 0; member < hosts.ranks.size(); ++member) {
        for (const std::uint16_t rank : hosts.ranks[member]) members_[rank] = static_cast<std::uint16_t>(member);
    }
    if (hosts.shared.memory == nullptr) return {};
    HostNetwork network{.chunks = *chunks_};
    if (!channels_.empty()) {
        network.send = [this](const Handle& work, std::uint64_t chunk) {
            if (channels_.size() > 1) work->on_failure([this](const Error& error) { end_channels(error); });
            ChannelDriver& channel = *channels_.channels()[chunk % channels_.size()];
            channel.submit(work, 0);
            channel.wake();
        };
    }
    start_host(hosts, std::move(network));
    return {};
}

Result<void> Communicator::open_channels(store::Rendezvous& rendezvous, const Hosts& hosts, Time deadline) {
    auto formed = find_each_other(rendezvous, options_, hosts.ranks, deadline);
    if (!formed) return tl::unexpected(formed.error());
    formation_ = formed->formation;
    nodes_ = std::move(formed->nodes);
    if (!formed->layout.empty()) {
        log_->write(observe::LogEvent::layout_chosen, {{"rank", rank_}, {"reason", formed->layout}});
    }
    for (std::size_t i = 0; i < formed->plans.size(); ++i) {
        auto& socket = formed->sockets[i];
        if (trace_ != nullptr) socket = observe::trace_transport(std::move(socket), trace_);
        formed->plans[i].ended = [this](const Error& error) { log_failure(error); };
        formed->plans[i].slow = [this](const std::string& text) { log_slow(text); };
        formed->plans[i].floats = [this](const protocol::WorkerCounters& counters) { log_floats(counters); };
        formed->plans[i].int32_lanes = [this] { log_int32_lanes(); };
    }
    const std::span plans(formed->plans);
    const std::span sockets(formed->sockets);
    for (const bool gathers : {false, true}) {
        const std::size_t first = gathers ? formation_.channels : 0;
        const std::size_t count = gathers ? plans.size() - first : formation_.channels;
        ChannelSet& set = gathers ? gathers_ : channels_;
        if (auto opened = set.open(sockets.subspan(first, count), plans.subspan(first, count)); !opened) return opened;
    }
    channels_.start();
    const Time begin = net::now();
    for (const auto& channel : channels_.channels()) {
        if (auto ready = wait_ready(*channel, rendezvous, begin, deadline); !ready) return ready;
    }
    return {};
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
