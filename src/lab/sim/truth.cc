// SPDX-License-Identifier: Apache-2.0
#include "sim/truth.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/timing.h"
#include "sim/processes.h"
#include "wire/bytes.h"

namespace atp::sim {
namespace {

using control::timing;
using std::chrono::milliseconds;
using Kind = Outage::Kind;
using Node = Outage::Node;

// Of each link. A member is lost after eight JOINs without an answer.
constexpr double largest_loss = 0.011;
constexpr Duration longest_delay = milliseconds(60);
// An operation that reaches an earlier deadline names whom it waits for, although nobody is at fault.
constexpr Duration least_deadline = std::chrono::seconds(15);
constexpr std::uint64_t least_queue_bytes = 100'000;
// An outage this short ends before any process can take it for a failure.
constexpr Duration too_short_to_see = milliseconds(250);
// The error comes within the hold time and this: the last JOIN before the outage, a question, and the way to all ranks.
constexpr Duration after_hold = std::chrono::seconds(2);

bool loses_state(Kind kind) { return kind == Kind::crash || kind == Kind::kill || kind == Kind::silence; }
bool is_cut(Kind kind) { return kind == Kind::cut || kind == Kind::cut_up || kind == Kind::cut_down; }

}  // namespace

bool Truth::is_known() const {
    const Faults& faults = scenario_.faults;
    const bool mild = faults.loss <= largest_loss && faults.reorder_delay <= longest_delay && faults.replay == 0 &&
                      !faults.interfere && scenario_.queue_bytes >= least_queue_bytes && !scenario_.straggler;
    const Duration deadline = scenario_.effective_deadline().value_or(least_deadline);
    return mild && faults.outages.size() <= 1 && deadline >= least_deadline &&
           scenario_.server == ServerPlacement::on_switch && scenario_.aggregation == Aggregation::everywhere &&
           !scenario_.in_path;
}

// A node may have processes of several jobs.
bool Truth::is_of_job(unsigned job) const {
    const bool only_a_process =
        outage().kind == Kind::crash || outage().kind == Kind::kill || outage().kind == Kind::leave;
    if (outage().node != Node::worker || job == outage().job) return true;
    const std::vector<NodeId>& hosts = fabric_.sites[job].worker_hosts;
    return !only_a_process && outage().index < hosts.size() &&
           hosts[outage().index] == fabric_.sites[outage().job].worker_hosts[outage().index];
}

bool Truth::is_culprit(unsigned job, const Error& error) const {
    const auto is_switch = [&](NodeId node) { return error.peer == to_string(address_of_switch(node)); };
    if (outage().node == Node::worker) {
        if (error.peer == fmt::format("rank {}", outage().index)) return true;
        const Site& site = fabric_.sites[job];
        const NodeId own_switch = site.entrances[outage().index].node;
        // The rank itself names its switch, if it learns nothing from it.
        if (!loses_state(outage().kind) && outage().kind != Kind::leave) return is_switch(own_switch);
        // The switch of a rack leaves with its last rank.
        const protocol::Place& place = site.membership->place(static_cast<std::uint16_t>(outage().index));
        return outage().kind == Kind::leave && site.root.exists() && place.mask0 == 1U << place.member &&
               is_switch(own_switch);
    }
    const NodeId victim =
        outage().node == Node::server ? fabric_.sites[outage().job].server_host : NodeId{outage().index};
    const NodeId center = fabric_.switches - 1;
    if (is_cut(outage().kind)) return is_switch(victim) || is_switch(center);
    // A leaf passes on that the root refuses.
    return is_switch(victim) || error.text.find("sent by " + to_string(address_of_switch(victim))) != std::string::npos;
}

bool Truth::was_left(unsigned job, unsigned rank, Time now) const {
    return is_cut(outage().kind) && outage().node == Node::worker && job == outage().job && rank == outage().index &&
           outage().lasts >= timing.hold && now >= outage().at + outage().lasts;
}

std::optional<std::string> Truth::objection_to(unsigned job, unsigned rank, const Error& error, Time now) const {
    if (!is_known()) return std::nullopt;
    if (scenario_.faults.outages.empty()) return "there is no fault";
    if (now < outage().at) return "the fault comes later";
    if (!is_of_job(job)) return "the fault is that of another job";
    if (is_harmless()) return "the fault is too short";
    if (!is_culprit(job, error) && !was_left(job, rank, now)) return "it is not at fault";
    return std::nullopt;
}

std::optional<std::string> Truth::objection_to_flush(NodeId at, std::span<const std::byte> packet) const {
    const auto byte = [&](std::size_t offset) { return wire::load_u8(packet.data() + offset); };
    if (packet.size() < ATP_HEADER_BYTES || byte(ATP_OFFSET_TYPE) != ATP_TYPE_FLUSH || byte(ATP_OFFSET_HOP) != 0) {
        return std::nullopt;
    }
    const std::uint32_t job = wire::load_u32(packet.data() + ATP_OFFSET_JOB) - scenario_.first_job;
    if (job >= fabric_.sites.size()) return std::nullopt;
    const Site& site = fabric_.sites[job];
    if (at == site.root.node || at + 1 == fabric_.switches) return std::nullopt;  // on its way down
    const std::uint32_t units = wire::load_u32(packet.data() + ATP_OFFSET_BITMAP1);
    bool is_rack = false;
    for (std::uint16_t rank = 0; rank < site.membership->workers(); ++rank) {
        if (fabric_.switch_of(site.worker_hosts[rank]) != at) continue;
        if ((units >> site.membership->place(rank).unit & 1U) != 0) return std::nullopt;
        is_rack = true;
    }
    if (!is_rack) return std::nullopt;
    return fmt::format("{}: a FLUSH for the racks {:#x} of job {}, of which none is here", fabric_.nodes[at].name,
                       units, scenario_.first_job + job);
}

bool Truth::stops(unsigned job) const {
    if (!is_known() || scenario_.faults.outages.empty() || !is_of_job(job)) return false;
    if (outage().node != Node::worker) {
        const Site& site = fabric_.sites[job];
        const NodeId victim =
            outage().node == Node::server ? fabric_.sites[outage().job].server_host : NodeId{outage().index};
        return site.root.node == victim ||
               std::ranges::any_of(site.entrances, [&](const SwitchPlace& at) { return at.node == victim; });
    }
    return is_cut(outage().kind) || fabric_.sites[job].worker_hosts.size() > 1;
}

Time Truth::fails_by() const { return outage().at + timing.hold + after_hold; }

bool Truth::is_harmless() const {
    return !loses_state(outage().kind) && outage().kind != Kind::leave && outage().lasts < too_short_to_see;
}

}  // namespace atp::sim
