// SPDX-License-Identifier: Apache-2.0
#include "p4agent/bmv2.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "protocol/switch.h"

namespace atp::p4agent {
namespace {

constexpr const char* tables = "standard";
constexpr const char* groups = "simple_pre_lag";
constexpr const char* mirrors = "simple_switch";
constexpr std::int32_t context = 0;
constexpr std::int32_t mirroring_session = 1;
constexpr std::int32_t flood_group = 1;
constexpr std::int32_t flood_copies = 1;  // number by which the program knows copies of a flooded frame
constexpr Duration call_timeout = std::chrono::seconds(2);

std::string in_ingress(const char* name) { return std::string("AtpIngress.") + name; }

ThriftArguments of_context(const std::string& name) {
    ThriftArguments arguments;
    arguments.number32(context).text(name);
    return arguments;
}

std::int32_t signed_of(std::uint32_t index) { return static_cast<std::int32_t>(index); }

}  // namespace

std::string big_endian(std::uint64_t value, unsigned bytes) {
    std::string text;
    for (unsigned at = bytes; at-- > 0;) text += static_cast<char>(value >> (8 * at) & 0xFFU);
    return text;
}

std::optional<PipelineProgram> program_of(const std::string& json) {
    const auto program = nlohmann::json::parse(json, nullptr, false);
    if (!program.is_object()) return std::nullopt;
    const auto size_of = [&program](const char* list, const std::string& name) -> std::uint32_t {
        for (const auto& each : program.value(list, nlohmann::json::array())) {
            if (each.value("name", "") == name) return each.value("size", std::uint32_t{0});
        }
        return 0;
    };
    const std::uint32_t events = size_of("counter_arrays", in_ingress("events"));
    if (events < 2 * ATP_EVENT_COUNT) return std::nullopt;
    PipelineProgram found;
    found.jobs = events / ATP_EVENT_COUNT - 1;
    found.aggregators = size_of("register_arrays", in_ingress("aggregator_seq"));
    if (found.aggregators != 0) {
        found.lanes = size_of("register_arrays", in_ingress("held_lanes")) / found.aggregators;
    } else {
        found.kind = PipelineProgram::Kind::passes;
        found.aggregators = size_of("register_arrays", in_ingress("one_pass.tag"));
        found.lanes = size_of("header_stacks", "lanes");
    }
    if (found.aggregators == 0 || found.lanes == 0) return std::nullopt;
    return found;
}

Result<Bmv2> Bmv2::open(const wire::Address& server) {
    auto connection = ThriftConnection::open(server, call_timeout);
    if (!connection) return tl::unexpected(connection.error());
    Bmv2 opened(*std::move(connection));
    if (auto prepared = opened.prepare(); !prepared) return tl::unexpected(prepared.error());
    return opened;
}

Result<void> Bmv2::prepare() {
    const auto json = connection_.call(tables, "bm_get_config", {});
    if (!json) return tl::unexpected(json.error());
    const auto program = program_of(json->text);
    if (!program) {
        return fail(Operation::configure, Reason::unsupported, "--p4",
                    // errors.md, starts, unsupported
                    "the switch runs another program: start simple_switch with p4/atp.v1model.p4 or "
                    "p4/pipeline.v1model.p4");
    }
    program_ = *program;
    const auto mirrored = connection_.call(
        mirrors, "mirroring_session_add", ThriftArguments().number32(mirroring_session).struct_of(control_port_number));
    if (!mirrored) return tl::unexpected(mirrored.error());
    return flood_to_all_ports();
}

// Frames to unknown stations and to groups go to all ports but that of the agent.
Result<void> Bmv2::flood_to_all_ports() {
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

std::optional<ThriftValue> Bmv2::call(const char* service, const char* function, const ThriftArguments& arguments) {
    if (failed_) return std::nullopt;
    auto answer = connection_.call(service, function, arguments);
    if (answer) return *std::move(answer);
    failed_ = answer.error().reason != Reason::rejected;
    return std::nullopt;
}

std::optional<Bmv2::Handle> Bmv2::add_entry(const char* table, const std::vector<std::string>& keys,
                                            const Action& action) {
    const auto handle = call(tables, "bm_mt_add_entry",
                             of_context(in_ingress(table))
                                 .exact_keys(keys)
                                 .text(in_ingress(action.name))
                                 .texts(action.arguments)
                                 .empty_struct());
    return handle ? std::optional(handle->number) : std::nullopt;
}

void Bmv2::change_entry(const char* table, Handle entry, const Action& action) {
    call(tables, "bm_mt_modify_entry",
         of_context(in_ingress(table)).number64(entry).text(in_ingress(action.name)).texts(action.arguments));
}

void Bmv2::remove_entry(const char* table, Handle entry) {
    call(tables, "bm_mt_delete_entry", of_context(in_ingress(table)).number64(entry));
}

void Bmv2::clear_table(const char* table) {
    call(tables, "bm_mt_clear_entries", of_context(in_ingress(table)).flag(false));
}

void Bmv2::clear_counter(const char* counter, std::uint32_t index) {
    call(tables, "bm_counter_write", of_context(in_ingress(counter)).number32(signed_of(index)).empty_struct());
}

std::uint64_t Bmv2::count(const char* counter, std::uint32_t index) {
    const auto value = call(tables, "bm_counter_read", of_context(in_ingress(counter)).number32(signed_of(index)));
    return value ? static_cast<std::uint64_t>(value->field(2).number) : 0;
}

std::vector<std::uint64_t> Bmv2::registers(const char* name) {
    std::vector<std::uint64_t> all;
    if (const auto values = call(tables, "bm_register_read_all", of_context(in_ingress(name)))) {
        for (const ThriftValue& value : values->list) all.push_back(static_cast<std::uint64_t>(value.number));
    }
    return all;
}

void Bmv2::clear_register(const char* name, std::uint32_t index) {
    call(tables, "bm_register_write", of_context(in_ingress(name)).number32(signed_of(index)).number64(0));
}

void Bmv2::clear_registers(const char* name) { call(tables, "bm_register_reset", of_context(in_ingress(name))); }

}  // namespace atp::p4agent
