// SPDX-License-Identifier: Apache-2.0
#include "p4agent/pipeline_plane.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace atp::p4agent {
namespace {

constexpr const char* tables = "standard";
constexpr const char* groups = "simple_pre_lag";
constexpr const char* mirrors = "simple_switch";
constexpr const char* jobs_table = "AtpIngress.jobs";
constexpr const char* admit_action = "AtpIngress.admit";
constexpr std::int32_t context = 0;
constexpr std::int32_t mirroring_session = 1;
constexpr std::int32_t flood_group = 1;
constexpr std::int32_t flood_copies = 1;  // number by which the program knows copies of a flooded frame
constexpr Duration call_timeout = std::chrono::seconds(2);

std::string big_endian(std::uint64_t value, unsigned bytes) {
    std::string text;
    for (unsigned at = bytes; at-- > 0;) text += static_cast<char>(value >> (8 * at) & 0xFFU);
    return text;
}

std::string in_ingress(const char* name) { return std::string("AtpIngress.") + name; }

std::vector<std::string> arguments_of(std::uint8_t level, std::uint64_t token, std::uint16_t slot) {
    return {big_endian(level, 1), big_endian(token, 8), big_endian(slot, 2)};
}

}  // namespace

std::optional<PipelineProgram> program_of(const std::string& json) {
    const auto program = nlohmann::json::parse(json, nullptr, false);
    if (!program.is_object()) return std::nullopt;
    const auto size_of = [&program](const char* list, const char* name) -> std::uint32_t {
        for (const auto& each : program.value(list, nlohmann::json::array())) {
            if (each.value("name", "") == in_ingress(name)) return each.value("size", std::uint32_t{0});
        }
        return 0;
    };
    PipelineProgram found;
    found.aggregators = size_of("register_arrays", "aggregator_seq");
    const std::uint32_t lanes = size_of("register_arrays", "held_lanes");
    const std::uint32_t events = size_of("counter_arrays", "events");
    if (found.aggregators == 0 || lanes < found.aggregators || events < 2 * ATP_EVENT_COUNT) return std::nullopt;
    found.lanes = lanes / found.aggregators;
    found.jobs = events / ATP_EVENT_COUNT - 1;
    return found;
}

Result<std::unique_ptr<PipelinePlane>> PipelinePlane::open(const wire::Address& server) {
    auto connection = ThriftConnection::open(server, call_timeout);
    if (!connection) return tl::unexpected(connection.error());
    std::unique_ptr<PipelinePlane> plane(new PipelinePlane(*std::move(connection)));
    if (auto prepared = plane->prepare(); !prepared) return tl::unexpected(prepared.error());
    return plane;
}

Result<void> PipelinePlane::prepare() {
    const auto json = connection_.call(tables, "bm_get_config", {});
    if (!json) return tl::unexpected(json.error());
    const auto program = program_of(json->text);
    if (!program) {
        return fail(Operation::configure, Reason::unsupported, "--p4",
                    "the switch runs another program: start simple_switch with p4/atp.v1model.p4");
    }
    program_ = *program;
    for (std::uint32_t slot = std::min<std::uint32_t>(program_.jobs, 0xFFFF); slot > 0; --slot)
        free_slots_.push_back(static_cast<std::uint16_t>(slot));
    const auto cleared = connection_.call(tables, "bm_mt_clear_entries",
                                          ThriftArguments().number32(context).text(jobs_table).flag(false));
    if (!cleared) return tl::unexpected(cleared.error());
    const auto mirrored = connection_.call(
        mirrors, "mirroring_session_add", ThriftArguments().number32(mirroring_session).struct_of(control_port_number));
    if (!mirrored) return tl::unexpected(mirrored.error());
    return flood_to_all_ports();
}

// Frames to unknown stations and to groups go to all ports but that of the agent.
Result<void> PipelinePlane::flood_to_all_ports() {
    const auto ports = connection_.call(tables, "bm_dev_mgr_show_ports", {});
    if (!ports) return tl::unexpected(ports.error());
    std::string map(static_cast<std::size_t>(control_port_number), '0');
    for (const ThriftValue& port : ports->list) {
        const std::int64_t number = port.field(1).number;
        if (number < 0 || number >= control_port_number) continue;
        map[map.size() - 1 - static_cast<std::size_t>(number)] = '1';
        interfaces_.push_back(port.field(2).text);
    }
    const auto group =
        connection_.call(groups, "bm_mc_mgrp_create", ThriftArguments().number32(context).number32(flood_group));
    if (!group && group.error().reason == Reason::rejected) return {};  // an earlier agent made it
    if (!group) return tl::unexpected(group.error());
    const auto node = connection_.call(groups, "bm_mc_node_create",
                                       ThriftArguments().number32(context).number32(flood_copies).text(map).text("0"));
    if (!node) return tl::unexpected(node.error());
    const auto joined = connection_.call(groups, "bm_mc_node_associate",
                                         ThriftArguments()
                                             .number32(context)
                                             .number32(static_cast<std::int32_t>(group->number))
                                             .number32(static_cast<std::int32_t>(node->number)));
    if (!joined) return tl::unexpected(joined.error());
    return {};
}

std::optional<ThriftValue> PipelinePlane::call(const char* service, const char* function,
                                               const ThriftArguments& arguments) const {
    if (failed_) return std::nullopt;
    auto answer = connection_.call(service, function, arguments);
    if (answer) return *std::move(answer);
    failed_ = answer.error().reason != Reason::rejected;
    return std::nullopt;
}

std::optional<PipelinePlane::JobEntry> PipelinePlane::add_entry(const Served& served, std::uint64_t token) {
    const control::AdmittedJob& job = served.job;
    const auto handle = call(tables, "bm_mt_add_entry",
                             ThriftArguments()
                                 .number32(context)
                                 .text(jobs_table)
                                 .exact_keys({big_endian(job.job, 4), big_endian(token, 8)})
                                 .text(admit_action)
                                 .texts(arguments_of(job.level, job.token, served.slot))
                                 .empty_struct());
    if (!handle) return std::nullopt;
    return JobEntry{.token = token, .handle = handle->number};
}

bool PipelinePlane::admit(const control::AdmittedJob& job) {
    if (served_.contains(job.key())) return true;
    if (free_slots_.empty()) return false;
    Served served{.job = job, .slot = free_slots_.back(), .entries = {}};
    // The counters of a job begin at 0.
    for (unsigned event = 0; event < ATP_EVENT_COUNT; ++event) {
        const auto index = static_cast<std::int32_t>(served.slot * ATP_EVENT_COUNT + event);
        call(tables, "bm_counter_write",
             ThriftArguments().number32(context).text(in_ingress("events")).number32(index).empty_struct());
    }
    const auto entry = add_entry(served, job.token);
    if (!entry) return false;
    served.entries.push_back(*entry);
    free_slots_.pop_back();
    served_.emplace(job.key(), std::move(served));
    return true;
}

void PipelinePlane::dismiss(const control::JobKey& job) {
    const auto found = served_.find(job);
    if (found == served_.end()) return;
    for (const JobEntry& entry : found->second.entries) {
        call(tables, "bm_mt_delete_entry", ThriftArguments().number32(context).text(jobs_table).number64(entry.handle));
    }
    free_slots_.push_back(found->second.slot);
    served_.erase(found);
}

void PipelinePlane::learn_group(const control::JobKey& job, std::uint64_t group_number) {
    const auto found = served_.find(job);
    if (found == served_.end()) return;
    std::vector<JobEntry>& entries = found->second.entries;
    if (std::ranges::find(entries, group_number, &JobEntry::token) != entries.end()) return;
    if (const auto entry = add_entry(found->second, group_number)) entries.push_back(*entry);
}

void PipelinePlane::set_level(const control::JobKey& job, std::uint8_t level) {
    const auto found = served_.find(job);
    if (found == served_.end() || found->second.job.level == level) return;
    Served& served = found->second;
    served.job.level = level;
    for (const JobEntry& entry : served.entries) {
        call(tables, "bm_mt_modify_entry",
             ThriftArguments()
                 .number32(context)
                 .text(jobs_table)
                 .number64(entry.handle)
                 .text(admit_action)
                 .texts(arguments_of(level, served.job.token, served.slot)));
    }
}

std::vector<control::AdmittedJob> PipelinePlane::jobs() const {
    std::vector<control::AdmittedJob> all;
    for (const auto& [key, served] : served_) all.push_back(served.job);
    return all;
}

std::uint64_t PipelinePlane::count(const char* counter, std::uint32_t index) const {
    const auto value =
        call(tables, "bm_counter_read",
             ThriftArguments().number32(context).text(in_ingress(counter)).number32(static_cast<std::int32_t>(index)));
    return value ? static_cast<std::uint64_t>(value->field(2).number) : 0;
}

protocol::SwitchCounters PipelinePlane::events_in(std::uint16_t slot) const {
    protocol::SwitchCounters counters;
    for (std::uint32_t event = 0; event < ATP_EVENT_COUNT; ++event)
        counters.events[event] = count("events", slot * ATP_EVENT_COUNT + event);
    return counters;
}

std::optional<protocol::SwitchCounters> PipelinePlane::packets_of(const control::JobKey& job) const {
    const auto found = served_.find(job);
    if (found == served_.end()) return std::nullopt;
    return events_in(found->second.slot);
}

protocol::SwitchCounters PipelinePlane::packets() const {
    protocol::SwitchCounters counters = events_in(0);
    counters.forged = count("forged", 0);
    return counters;
}

}  // namespace atp::p4agent
