// SPDX-License-Identifier: Apache-2.0
#include "switchd/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "protocol/decide.h"
#include "wire/packet.h"

namespace atp::switchd {
namespace {

using Json = nlohmann::ordered_json;

// Packet counters under the names that operators see: what became of packets.
Json packets_json(const protocol::SwitchCounters& counters) {
    const auto event = [&](atp_switch_event which) { return counters.events[which]; };
    return {{"claimed", event(ATP_EVENT_CLAIMED)},
            {"added", event(ATP_EVENT_ADDED)},
            {"completed", event(ATP_EVENT_COMPLETED)},
            {"single", event(ATP_EVENT_SINGLE)},
            {"collisions", event(ATP_EVENT_COLLIDED)},
            {"bypassed", event(ATP_EVENT_BYPASSED)},
            {"late", event(ATP_EVENT_LATE)},
            {"duplicates", event(ATP_EVENT_DUPLICATE)},
            {"reemitted", event(ATP_EVENT_REEMITTED)},
            {"resends", event(ATP_EVENT_RESENT)},
            {"fetched", event(ATP_EVENT_FETCHED)},
            {"released", event(ATP_EVENT_RELEASED)},
            {"expired", event(ATP_EVENT_EXPIRED)},
            {"taken_over", event(ATP_EVENT_TAKEN_OVER)},
            {"superseded", event(ATP_EVENT_SUPERSEDED)},
            {"flushes", event(ATP_EVENT_FLUSHED)},
            {"closed", event(ATP_EVENT_CLOSED)},
            {"misfits", event(ATP_EVENT_MISFIT)},
            {"passed", event(ATP_EVENT_PASSED)},
            {"ecn", counters.ecn},
            {"overflows", counters.overflows},
            {"no_room", counters.no_room},
            {"forged", counters.forged}};
}

// By reason; reasons that never occurred are left out.
template <class DecodeError, class Counters>
Json refused_json(const Counters& counters) {
    Json json = Json::object();
    for (std::size_t i = 0; i < counters.refused.size(); ++i) {
        if (counters.refused[i] != 0) json[std::string(to_string(static_cast<DecodeError>(i)))] = counters.refused[i];
    }
    return json;
}

Json udp_json(const net::UdpCounters& udp) {
    return {{"received_packets", udp.received_packets},
            {"received_bytes", udp.received_bytes},
            {"receive_calls", udp.receive_calls},
            {"dropped_by_kernel", udp.dropped_packets},
            {"truncated", udp.truncated_packets},
            {"marked", udp.congested_packets},
            {"sent_packets", udp.sent_packets},
            {"sent_bytes", udp.sent_bytes},
            {"send_calls", udp.send_calls},
            {"refused_by_kernel", udp.refused_packets},
            {"overrun", udp.overrun_packets}};
}

Json features_json(const net::UdpReport& report) {
    Json json = Json::object();
    for (std::size_t i = 0; i < net::feature_count; ++i) {
        const auto feature = static_cast<net::Feature>(i);
        json[std::string(to_string(feature))] = report[feature].text;
    }
    return json;
}

Json server_json(const protocol::ServerCounters& server) {
    return {{"completed", server.completed},   {"added_here", server.added_here},
            {"gradients", server.gradients},   {"duplicates", server.duplicates},
            {"replaced", server.replaced},     {"overlapping", server.overlapping},
            {"overflowed", server.overflowed}, {"float_fragments", server.float_fragments},
            {"collided", server.collided},     {"remapped", server.remapped},
            {"marked", server.marked},         {"acks", server.acks},
            {"reacks", server.reacks},         {"nacks", server.nacks},
            {"waits", server.waits},           {"flushes", server.flushes},
            {"stale", server.stale},           {"ahead", server.ahead},
            {"forged", server.forged},         {"refused", server.refused},
            {"mismatched", server.mismatched}, {"audit_failures", server.audit_failures},
            {"unsent", server.unsent}};
}

Json channel_json(const ChannelSnapshot& channel) {
    Json json{
        {"job", channel.job},           {"channel", channel.channel},   {"protocol", wire::to_string(channel.protocol)},
        {"level", channel.level},       {"ready", channel.ready},       {"present", channel.present},
        {"expected", channel.expected}, {"hosts_server", channel.hosts}};
    json["results"] = channel.by_group ? "multicast" : "unicast";
    if (channel.group.family() != wire::Family::none) json["group"] = to_string(channel.group);
    if (channel.hosts) json["server"] = server_json(channel.server);
    return json;
}

Json kernel_json(const KernelSnapshot& kernel) {
    Json json{{"lanes", kernel.lanes},
              {"level", kernel.level},
              {"passing_jobs", kernel.passing_jobs},
              {"without_release", kernel.without_release},
              {"oversized", kernel.oversized},
              {"damaged", kernel.damaged},
              {"not_admitted", kernel.not_admitted}};
    Json& interfaces = json["interfaces"] = Json::object();
    for (const auto& [name, mode] : kernel.interfaces) interfaces[name] = mode;
    return json;
}

Json shard_json(const ShardSnapshot& shard) {
    Json json{{"address", to_string(shard.address)},
              {"aggregators", shard.aggregators},
              {"packets", packets_json(shard.packets)},
              {"refused", refused_json<wire::DecodeError>(shard.packets)},
              {"unrouted", shard.shard.unrouted},
              {"multicast_results", shard.shard.grouped},
              {"control_refused", shard.shard.control_refused},
              {"control_lost", shard.shard.letters_lost},
              {"joins", shard.tree.joins},
              {"joins_refused", shard.tree.refused},
              {"members_expired", shard.tree.expired},
              {"members_left", shard.tree.left},
              {"udp", udp_json(shard.udp)},
              {"features", features_json(shard.features)}};
    Json& jobs = json["jobs"] = Json::array();
    for (const JobSnapshot& job : shard.jobs) {
        jobs.push_back({{"job", job.job}, {"packets", packets_json(job.counters)}});
    }
    Json& channels = json["channels"] = Json::array();
    for (const ChannelSnapshot& channel : shard.channels) channels.push_back(channel_json(channel));
    if (shard.kernel) json["kernel"] = kernel_json(*shard.kernel);
    for (const std::string& part : shard.parts) json.update(Json::parse(part));
    return json;
}

std::uint64_t memory_of(const NodeSnapshot& snapshot) {
    std::uint64_t bytes = snapshot.memory_bytes;
    for (const ShardSnapshot& shard : snapshot.shards) bytes += memory_of_kernel(shard);
    return bytes;
}

}  // namespace

std::uint64_t memory_of_kernel(const ShardSnapshot& shard) {
    return shard.kernel ? shard.aggregators * protocol::aggregator_bytes(shard.kernel->lanes) : 0;
}

std::string to_json(const NodeSnapshot& snapshot) {
    Json json{{"software", snapshot.software},          {"id", fmt::format("{:016x}", snapshot.id)},
              {"address", to_string(snapshot.address)}, {"uptime_s", snapshot.uptime_s},
              {"memory_bytes", memory_of(snapshot)},    {"lanes", snapshot.lanes}};
    if (snapshot.parent.family() != wire::Family::none) {
        json["parent"] = to_string(snapshot.parent);
        json["parent_answers"] = snapshot.parent_answers;
    }
    if (!snapshot.parts.empty()) json.update(Json::parse(snapshot.parts));
    Json& shards = json["shards"] = Json::array();
    for (const ShardSnapshot& shard : snapshot.shards) shards.push_back(shard_json(shard));
    return json.dump();
}

}  // namespace atp::switchd
