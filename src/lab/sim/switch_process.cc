// SPDX-License-Identifier: Apache-2.0
#include "sim/switch_process.h"

#include "control/address_range.h"
#include "sim/tenant_keys.h"
#include "wire/ack_list.h"
#include "wire/packet.h"

namespace atp::sim {

protocol::SwitchConfig table_of(const Scenario& scenario) {
    return {.aggregators = scenario.aggregators,
            .lanes = scenario.lanes,
            .jobs = incarnations_kept * scenario.jobs,
            .ageing = scenario.ageing};
}

control::JoinTreeConfig tree_of(const Scenario& scenario, const std::string& name) {
    control::JoinTreeConfig tree;
    tree.jobs = incarnations_kept * scenario.jobs;
    tree.channels = tree.jobs * scenario.channels;
    tree.server_bytes = ~std::uint64_t{0} >> 1U;
    tree.groups = *control::parse_ranges("239.0.0.0/8");
    tree.asks_path = scenario.in_path;
    tree.tenants = tenants_of(scenario, name);
    tree.parent_key = key_of_switches(scenario);
    return tree;
}

std::uint64_t added_of(const SwitchCounters& counters) {
    return counters.events[ATP_EVENT_ADDED] + counters.events[ATP_EVENT_COMPLETED];
}

void add_to(const SwitchCounters& from, SwitchCounters& to) {
    for (std::size_t i = 0; i < from.events.size(); ++i) to.events[i] += from.events[i];
    for (std::size_t i = 0; i < from.refused.size(); ++i) to.refused[i] += from.refused[i];
    to.forged += from.forged;
    to.ecn += from.ecn;
    to.overflows += from.overflows;
    to.no_room += from.no_room;
}

SwitchProcess::SwitchProcess(host::SwitchHostConfig config, std::string name, Trace* trace)
    : config_(std::move(config)), name_(std::move(name)), trace_(trace) {
    if (trace != nullptr) config_.shard.trace = this;
}

void SwitchProcess::start(std::uint64_t boot) {
    config_.boot = boot;
    host_ = std::make_unique<host::SwitchHost>(config_);
}

void SwitchProcess::stop() {
    if (host_ == nullptr) return;
    add_to(host_->shard().table().counters(), past_);
    keep_counts([this] { host_.reset(); });
}

SwitchProcess::Counts SwitchProcess::counts() const {
    Counts counts;
    if (host_ == nullptr) return counts;
    host_->shard().tree().for_each([&](const control::Branch& branch) {
        const protocol::Server* const server = host_->shard().server_of(branch);
        if (server != nullptr) counts.servers[control::key_of(branch.terms)] = server->counters();
    });
    host_->shard().table().for_each_job(
        [&](std::uint32_t job, const SwitchCounters& packets) { counts.added[job] += added_of(packets); });
    return counts;
}

// A job's counters restart with its next incarnation, and the old and the new one may overlap: what is less than
// before was lost.
void SwitchProcess::keep_closed(const Counts& before) {
    const Counts now = counts();
    for (const auto& [key, server] : before.servers) {
        if (!now.servers.contains(key)) add_counters(server_fields, server, kept_[key.job].server);
    }
    for (const auto& [job, added] : before.added) {
        const auto found = now.added.find(job);
        const std::uint64_t left = found == now.added.end() ? 0 : found->second;
        if (left < added) kept_[job].added += added - left;
    }
}

void SwitchProcess::add_totals(std::uint32_t job, SwitchTotals& totals) const {
    const Counts now = counts();
    for (const auto& [key, server] : now.servers) {
        if (key.job == job) add_counters(server_fields, server, totals.server);
    }
    for (const auto& [each, added] : now.added) totals.added += each == job ? added : 0;
    const auto kept = kept_.find(job);
    if (kept == kept_.end()) return;
    add_counters(server_fields, kept->second.server, totals.server);
    totals.added += kept->second.added;
    totals.lists.acks += kept->second.lists.acks;
    totals.lists.lists += kept->second.lists.lists;
}

SwitchCounters SwitchProcess::counters() const {
    SwitchCounters sum = past_;
    if (host_ != nullptr) add_to(host_->shard().table().counters(), sum);
    return sum;
}

void SwitchProcess::note_list(std::span<const std::byte> packet) {
    ListCounts& lists = kept_[wire::load_u32(packet.data() + ATP_OFFSET_JOB)].lists;
    lists.acks += 1 + (packet.size() - ATP_HEADER_BYTES) / wire::listed_ack_bytes;
    ++lists.lists;
}

void SwitchProcess::packet(Time now, std::string_view what, std::span<const std::byte> bytes,
                           const wire::Address* /*peer*/, bool /*arrived*/) {
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    trace_->packet(now, name_, what, wire::describe_datagram(copy));
}

}  // namespace atp::sim
