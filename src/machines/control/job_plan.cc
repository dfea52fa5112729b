// SPDX-License-Identifier: Apache-2.0
#include "control/job_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "control/rank_placement.h"
#include "protocol/channel.h"
#include "protocol/worker.h"

namespace atp::control {
namespace {

// A channel has a thread on each rank.
constexpr std::uint32_t most_channels = 64;
constexpr std::uint32_t least_window = 8;
// Servers on hosts share their links with gradients, so that results come in bursts. A shorter timer mostly asks for
// fragments that other workers have still in their queues.
constexpr Duration timeout_on_hosts = std::chrono::milliseconds(50);

// Names of switches in a share of a layout; those of real ones are random.
constexpr std::uint64_t server_id = 1;
constexpr std::uint64_t first_leaf_id = 2;

Failure refuse(std::string text) { return fail(Operation::join, Reason::unsupported, {}, std::move(text)); }

Failure refuse_for(std::uint32_t rank, std::string text) {
    return fail_by_rank(Operation::join, Reason::unsupported, rank, std::move(text));
}

Failure malformed(std::uint32_t rank, std::string text) {
    return fail_by_rank(Operation::rendezvous, Reason::malformed, rank, std::move(text));
}

LayoutRank layout_rank_of(const wire::NetworkFacts& facts) {
    return {.leaf = facts.path.empty() ? 0 : facts.path.front().id,
            .root = facts.path.empty() ? 0 : facts.path.back().id,
            .serves = facts.serves,
            .host = facts.host,
            .rack = facts.uplink.empty() ? facts.rack : facts.uplink,
            .in_path = !facts.rack.empty(),
            .host_bits_per_s = facts.host_bits_per_s,
            .uplink_bits_per_s = facts.uplink_bits_per_s};
}

// The path of a worker in one share of a layout with servers on hosts.
RankPath path_in(const LayoutShare& share, std::size_t worker, const wire::NetworkFacts& facts) {
    const Ascent& ascent = share.ascents[worker];
    RankPath path;
    if (ascent.kind == Ascent::Kind::in_path) path.rack = facts.rack;
    if (ascent.kind == Ascent::Kind::by_switch) path.switches.push_back(facts.path.front().id);
    if (ascent.kind == Ascent::Kind::by_rank) path.switches.push_back(first_leaf_id + ascent.leaf);
    path.switches.push_back(server_id);
    return path;
}

// The first worker whose process runs the switch with this id.
std::optional<std::uint16_t> host_of_switch(const std::vector<wire::NetworkFacts>& facts, std::uint64_t id) {
    const auto host = std::ranges::find_if(
        facts, [id](const wire::NetworkFacts& each) { return each.hosts_switch && each.path.front().id == id; });
    if (host == facts.end()) return std::nullopt;
    return static_cast<std::uint16_t>(host - facts.begin());
}

// If servers on several hosts send to each host at once, their windows share what one switch would have.
std::uint32_t window_beside(std::size_t servers, std::uint32_t window) {
    const std::uint32_t share = window / std::bit_ceil(static_cast<std::uint32_t>(servers));
    return std::max(share, std::min(window, least_window));
}

}  // namespace

JobPlanner::JobPlanner(JobRules rules, JobName name, std::vector<std::uint32_t> ranks,
                       std::vector<wire::NetworkFacts> facts)
    : rules_(std::move(rules)), name_(name), ranks_(std::move(ranks)), facts_(std::move(facts)) {
    for (const wire::NetworkFacts& each : facts_) layout_ranks_.push_back(layout_rank_of(each));
}

Result<JobPlanner> JobPlanner::make(JobRules rules, JobName name, std::vector<std::uint32_t> ranks,
                                    std::vector<wire::NetworkFacts> facts) {
    JobPlanner planner(std::move(rules), name, std::move(ranks), std::move(facts));
    auto layout = planner.choose();
    if (!layout) return tl::unexpected(layout.error());
    planner.adopt(*std::move(layout));
    planner.text_ = planner.layout_text();
    if (planner.rules_.colocated) {
        const std::uint32_t needed = planner.sockets();
        for (std::size_t worker = 0; worker < planner.facts_.size(); ++worker) {
            const std::size_t left = planner.facts_[worker].sockets.size();
            if (left >= needed) continue;
            return malformed(
                planner.ranks_[worker],
                // errors.md, forms, malformed: two versions of ATP: [upgrade](../operate/upgrade.md#versions)
                fmt::format("it names {} sockets for {} channels: run the same version of atp on all ranks", left,
                            needed));
        }
    }
    if (planner.has_servers()) return planner;
    if (auto placed = planner.place(); !placed) return tl::unexpected(placed.error());
    return planner;
}

// Why the ranks cannot form a layout with servers.
Failure JobPlanner::objection(std::string_view layout) const {
    const auto silent = std::ranges::find(facts_, false, &wire::NetworkFacts::serves);
    if (silent == facts_.end()) {
        return refuse(fmt::format("the layout \"{}\" would need more than {} units, or ranks in one of them", layout,
                                  ATP_BITMAP_BITS));
    }
    const std::uint32_t rank = ranks_[static_cast<std::size_t>(silent - facts_.begin())];
    // errors.md, forms, unsupported: every rank of this layout may have to serve a part of the sums
    return refuse_for(
        rank, fmt::format("rank {} has no address to listen at, which the layout \"{}\" needs of all ranks: set "
                          "`listen`, or name switches below one root",
                          rank, layout));
}

void JobPlanner::adopt(Layout layout) {
    layout_ = std::move(layout);
    leads_.assign(facts_.size(), false);
    climbs_.assign(facts_.size(), false);
    for (const LayoutShare& share : layout_.shares) {
        for (std::size_t worker = 0; worker < share.ascents.size(); ++worker) {
            const Ascent& ascent = share.ascents[worker];
            if (ascent.kind == Ascent::Kind::by_rank) leads_[ascent.leaf] = true;
            if (ascent.kind == Ascent::Kind::by_switch) climbs_[worker] = true;
        }
    }
}

Result<Layout> JobPlanner::choose() const {
    const auto nameless = std::ranges::find(layout_ranks_, 0U, &LayoutRank::leaf);
    if (!rules_.layout) {
        if (auto best = best_layout(layout_ranks_)) return *std::move(best);
    } else if (*rules_.layout != LayoutKind::one_root) {
        if (auto layout = layout_of(*rules_.layout, layout_ranks_)) return *std::move(layout);
        return objection(to_string(*rules_.layout));
    }
    // Ranks that see different roots look again: a parent may have changed.
    if (nameless == layout_ranks_.end()) {
        return layout_of(LayoutKind::one_root, layout_ranks_).value_or(Layout{});
    }
    if (!rules_.layout) return objection("hosts");
    const std::uint32_t rank = ranks_[static_cast<std::size_t>(nameless - layout_ranks_.begin())];
    // errors.md, forms, unsupported: `server` places the servers on or behind one switch
    return refuse_for(
        rank, fmt::format("rank {} names no switch, which this place of the servers needs of all ranks: name one, "
                          "or leave `server` unset",
                          rank));
}

// ---------------------------------------------------------------------------------------------------- Servers on hosts

std::vector<std::uint16_t> JobPlanner::servers() const {
    std::set<std::uint16_t> workers;
    for (const LayoutShare& share : layout_.shares) workers.insert(share.server);
    return {workers.begin(), workers.end()};
}

Result<void> JobPlanner::check(const std::vector<wire::ServerFacts>& servers,
                               const std::vector<wire::ReachedFacts>& reached) const {
    const std::vector<std::uint16_t> serving = this->servers();
    for (const std::uint16_t worker : serving) {
        if (servers[worker].address.family == 0) return malformed(ranks_[worker], "it has no server, but should");
    }
    for (std::size_t worker = 0; worker < reached.size(); ++worker) {
        const wire::ReachedFacts& each = reached[worker];
        if (each.lanes.size() != serving.size()) {
            return malformed(ranks_[worker],
                             fmt::format("it names {} servers, not {}", each.lanes.size(), serving.size()));
        }
        if (each.lanes.front() == 0) {
            return malformed(ranks_[worker], fmt::format("it does not reach rank {}, which serves every layout",
                                                         ranks_[serving.front()]));
        }
        if (each.faults.empty() && std::ranges::count(each.lanes, 0U) != 0) {
            return malformed(ranks_[worker], "it names no fault of a server that does not answer it");
        }
        const bool led = leads(static_cast<std::uint16_t>(worker)) && each.faults.empty();
        if (led && each.leaf.family == 0) return malformed(ranks_[worker], "it has no switch for its rack, but should");
    }
    return {};
}

Result<void> JobPlanner::settle(std::vector<wire::ServerFacts> servers, std::vector<wire::ReachedFacts> reached) {
    if (auto checked = check(servers, reached); !checked) return checked;
    const auto cut = std::ranges::find_if(reached, [](const wire::ReachedFacts& each) { return !each.faults.empty(); });
    if (cut != reached.end()) {
        const std::string why =
            fmt::format("rank {} does not reach rank {}: {}", ranks_[static_cast<std::size_t>(cut - reached.begin())],
                        cut->faults.front().to, cut->faults.front().why);
        auto root = layout_of(LayoutKind::one_root, layout_ranks_);
        if (root && !rules_.layout) {
            adopt(*std::move(root));
            text_ = fmt::format("one switch above all ranks adds, because {}", why);
        } else {
            const std::uint16_t server = this->servers().front();
            adopt({.kind = LayoutKind::hosts,
                   .shares = {{.server = server, .ascents = std::vector<Ascent>(facts_.size())}}});
            one_server_ = true;
            text_ = fmt::format("rank {} serves all sums, because {}", ranks_[server], why);
        }
    }
    servers_ = std::move(servers);
    reached_ = std::move(reached);
    return place();
}

// Each share of a layout has its own server, and so its own units.
Result<void> JobPlanner::place() {
    const std::size_t count = has_servers() ? layout_.shares.size() : 1;
    for (std::size_t number = 0; number < count; ++number) {
        std::vector<RankPath> paths;
        for (std::size_t worker = 0; worker < facts_.size(); ++worker) {
            RankPath path;
            if (has_servers()) {
                path = path_in(layout_.shares[number], worker, facts_[worker]);
            } else {
                path.rack = facts_[worker].rack;
                for (const wire::PathSwitch& next : facts_[worker].path) path.switches.push_back(next.id);
            }
            path.rank = ranks_[worker];
            paths.push_back(std::move(path));
        }
        auto membership = place_ranks(paths);
        if (!membership) return tl::unexpected(membership.error());
        memberships_.push_back(std::make_shared<const protocol::Membership>(*std::move(membership)));
    }
    const Limits found = limits();
    if (found.lanes <= (rules_.audit ? 1U : 0U)) {
        return malformed(ranks_[found.narrowest],
                         fmt::format("packets of {} lanes on its path have no room for an element", found.lanes));
    }
    plan_ = computed_plan(found);
    return {};
}

// --------------------------------------------------------------------------------------------------------------- Terms

std::uint32_t JobPlanner::channels() const {
    const auto shares = static_cast<std::uint32_t>(std::max<std::size_t>(layout_.shares.size(), 1));
    return std::max(shares, std::min(rules_.channels * shares, most_channels / shares * shares));
}

// Lanes that fit a packet on all paths of this worker.
std::uint32_t JobPlanner::lanes_of(std::size_t worker) const {
    if (!has_servers()) return facts_[worker].lanes;
    const std::vector<std::uint32_t>& all = reached_[worker].lanes;
    if (one_server_) return all.front();
    const std::uint32_t lanes = std::ranges::min(all);
    return climbs(static_cast<std::uint16_t>(worker)) ? std::min(lanes, facts_[worker].lanes) : lanes;
}

void JobPlanner::Limits::take_lanes(std::size_t worker, std::uint32_t most) {
    if (most >= lanes) return;
    lanes = most;
    narrowest = worker;
}

// The smallest table and the shortest packets on the paths of all workers.
JobPlanner::Limits JobPlanner::limits() const {
    Limits limits{.lanes = ATP_MAX_LANES, .aggregators = UINT32_MAX};
    // A switch without memory sets no limit: it forwards everything, or refuses the JOIN.
    std::size_t worker = 0;
    const auto pass = [&](std::uint32_t aggregators, std::uint32_t lanes) {
        if (aggregators == 0) return;
        limits.aggregators = std::min(limits.aggregators, aggregators);
        limits.take_lanes(worker, lanes);
    };
    for (; worker < facts_.size(); ++worker) {
        limits.take_lanes(worker, lanes_of(worker));
        const std::span<const wire::PathSwitch> path(facts_[worker].path);
        const bool climbs_here = has_servers() && climbs(static_cast<std::uint16_t>(worker));
        // Servers on hosts have no memory for sums of switches.
        for (const wire::PathSwitch& next : has_servers() ? path.first(climbs_here ? 1 : 0) : path) {
            pass(next.aggregators, next.lanes);
        }
        if (leads(static_cast<std::uint16_t>(worker))) {
            pass(reached_[worker].leaf_aggregators, reached_[worker].leaf_lanes);
        }
    }
    if (limits.aggregators == UINT32_MAX) limits.aggregators = 1;
    if (rules_.lanes != 0) limits.lanes = rules_.lanes;
    return limits;
}

wire::JobPlan JobPlanner::computed_plan(const Limits& found) const {
    const unsigned units = memberships_.front()->units();
    std::uint32_t window = rules_.window;
    if (window == 0) {
        window = window_beside(std::max<std::size_t>(layout_.shares.size(), 1), protocol::usual_window(found.lanes));
    }
    return {.job = name_.job,
            .channels = static_cast<std::uint16_t>(channels()),
            .lanes = static_cast<std::uint16_t>(found.lanes),
            .window = window,
            .aggregators = found.aggregators,
            .units = static_cast<std::uint8_t>(units),
            .levels = static_cast<std::uint8_t>(units == 1 ? 1 : 2),
            .layout = static_cast<std::uint8_t>(layout_.kind)};
}

wire::Endpoint JobPlanner::server_of(std::uint32_t number) const {
    if (rules_.colocated) return facts_[number % facts_.size()].sockets[number];
    if (rules_.dedicated.empty()) return {};
    return rules_.dedicated[number % rules_.dedicated.size()];
}

void JobPlanner::join_in_layout(PlannedChannel& channel, std::size_t share, std::uint16_t worker) const {
    const LayoutShare& planned = layout_.shares[share];
    const Ascent& ascent = planned.ascents[worker];
    const wire::Endpoint& server = servers_[planned.server].address;
    channel.min_timeout = timeout_on_hosts;
    channel.root_rank = planned.server;
    if (channel.membership->units() > 1) channel.terms.root = server;
    if (ascent.kind == Ascent::Kind::by_switch) return;
    channel.join_at = server;
    channel.switch_rank = planned.server;
    // A rank behind a switch in the path addresses the last switch.
    if (ascent.kind == Ascent::Kind::in_path) channel.level = 1;
    if (ascent.kind != Ascent::Kind::by_rank) return;
    channel.join_at = reached_[ascent.leaf].leaf;
    channel.switch_rank = ascent.leaf;
}

PlannedChannel JobPlanner::channel(std::uint32_t number, std::uint16_t worker) const {
    const std::size_t share = number % memberships_.size();
    const std::shared_ptr<const protocol::Membership>& membership = memberships_[share];
    const auto number16 = static_cast<std::uint16_t>(number);
    const auto slots_log2 = static_cast<std::uint8_t>(std::countr_zero(protocol::slots_for(plan_.window)));
    PlannedChannel channel{.terms = {.job = name_.job,
                                     .token = name_.token,
                                     .channel = number16,
                                     .lanes = plan_.lanes,
                                     .window_log2 = slots_log2,
                                     .audit = rules_.audit,
                                     .aggregators = plan_.aggregators,
                                     .first_seq = 0,
                                     .mask1 = membership->all_units(),
                                     .scale = rules_.scale,
                                     .server = server_of(number),
                                     .group = group_of(rules_.multicast, name_.first_group, number16)},
                           .unit = {},
                           .place = membership->place(worker),
                           .membership = membership,
                           .window = plan_.window,
                           .channels = plan_.channels,
                           .bypass_above = protocol::bounded_magnitude(membership->workers())};
    const protocol::Place& place = channel.place;
    channel.unit = {.unit = place.unit,
                    .members = 1U << place.member,
                    .mask0 = place.mask0,
                    .direct = membership->unit(place.unit).direct,
                    .ranks = {worker}};
    channel.level = place.hop;
    // As many threads as the option says: the shares divide the work of one.
    channel.thread = number % plan_.channels / static_cast<std::uint32_t>(memberships_.size());
    if (rules_.colocated) channel.server_rank = static_cast<std::uint16_t>(number % facts_.size());
    if (has_servers()) {
        join_in_layout(channel, share, worker);
        return channel;
    }
    if (!facts_[worker].rack.empty()) channel.level = 1;
    channel.switch_rank = host_of_switch(facts_, facts_[worker].path.front().id);
    return channel;
}

// ---------------------------------------------------------------------------------------------------------------- Text

std::string JobPlanner::busiest_text() const {
    const LinkLoad& busiest = layout_.busiest;
    std::string text =
        fmt::format("busiest is the link {} rank {} with {:.2f} tensors in each direction",
                    busiest.is_uplink ? "above the rack of" : "of", ranks_[busiest.rank], busiest.tensors);
    if (busiest.bits_per_s > 0) text += fmt::format(" at {:.4g} Mbit/s", busiest.bits_per_s / 1e6);
    return text;
}

std::string JobPlanner::layout_text() const {
    if (layout_.kind == LayoutKind::one_root) return "one switch above all ranks adds; " + busiest_text();
    std::set<std::uint64_t> switches;
    std::set<std::uint16_t> hosts;
    for (const LayoutShare& share : layout_.shares) {
        for (std::size_t worker = 0; worker < facts_.size(); ++worker) {
            const Ascent& ascent = share.ascents[worker];
            if (ascent.kind == Ascent::Kind::by_switch) switches.insert(layout_ranks_[worker].leaf);
            if (ascent.kind == Ascent::Kind::by_rank) hosts.insert(ascent.leaf);
        }
    }
    std::string text = fmt::format("{} hosts serve the sums", servers().size());
    if (!switches.empty()) text += fmt::format(", {} switches add for their racks", switches.size());
    if (!hosts.empty()) text += fmt::format(", {} hosts take turns to add for theirs", hosts.size());
    return fmt::format("{}; {}, with a switch above all ranks 1", text, busiest_text());
}

}  // namespace atp::control
