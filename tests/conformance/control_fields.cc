// SPDX-License-Identifier: Apache-2.0
// The fields of control messages as JSON.
#include <nlohmann/json.hpp>

#include "control_vectors.h"

namespace atp::conformance {
namespace {

using Json = nlohmann::ordered_json;
using wire::ControlType;
using wire::StoreType;

Json host_of(const wire::Endpoint& endpoint) {
    Json host = Json::array();
    for (const std::byte byte : endpoint.host) host.push_back(std::to_integer<unsigned>(byte));
    return host;
}

Json to_json(const std::vector<wire::Edge>& edges) {
    Json list = Json::array();
    for (const wire::Edge& edge : edges) {
        list.push_back({{"kind", wire::to_string(edge.kind)},
                        {"evidence", wire::to_string(edge.evidence)},
                        {"unit", edge.unit},
                        {"member", edge.member},
                        {"silent_ms", edge.silent_ms},
                        {"detail", edge.detail},
                        {"at_family", edge.at.family},
                        {"at_port", edge.at.port},
                        {"at_host", host_of(edge.at)}});
    }
    return list;
}

Json to_json(const wire::Pace& pace) {
    return {{"share_percent", pace.share_percent},
            {"last_percent", pace.last_percent},
            {"unit", pace.unit},
            {"member", pace.member},
            {"whole_unit", pace.whole_unit},
            {"waited_permille", pace.waited_permille}};
}

Json to_json(const std::vector<wire::Statement>& statements) {
    Json list = Json::array();
    for (const wire::Statement& statement : statements) {
        list.push_back({{"count", statement.count},
                        {"unit", statement.unit},
                        {"member", statement.member},
                        {"text", statement.text}});
    }
    return list;
}

Json to_json(const wire::Join& join) {
    const wire::ChannelTerms& terms = join.terms;
    Json units = Json::array();
    for (const wire::JoiningUnit& unit : join.units) {
        units.push_back({{"unit", unit.unit},
                         {"direct", unit.direct},
                         {"members", unit.members},
                         {"mask0", unit.mask0},
                         {"ranks", unit.ranks}});
    }
    return {{"nonce", join.nonce},
            {"job", terms.job},
            {"token", terms.token},
            {"channel", terms.channel},
            {"lanes", terms.lanes},
            {"window_log2", terms.window_log2},
            {"audit", terms.audit},
            {"aggregators", terms.aggregators},
            {"first_seq", terms.first_seq},
            {"mask1", terms.mask1},
            {"scale", terms.scale},
            {"server_family", terms.server.family},
            {"server_port", terms.server.port},
            {"server_host", host_of(terms.server)},
            {"group_family", terms.group.family},
            {"group_port", terms.group.port},
            {"group_host", host_of(terms.group)},
            {"root_family", terms.root.family},
            {"root_port", terms.root.port},
            {"root_host", host_of(terms.root)},
            {"cookie", join.cookie},
            {"epoch", join.epoch},
            {"level", join.level},
            {"begun", join.begun},
            {"hears_group", join.receives_group},
            {"int32_path", join.int32_path},
            {"units", units},
            {"pace", to_json(join.pace)},
            {"edges", to_json(join.edges)},
            {"statements", to_json(join.statements)}};
}

Json to_json(const wire::Joined& message) {
    return {{"nonce", message.nonce},
            {"job", message.job},
            {"token", message.token},
            {"channel", message.channel},
            {"epoch", message.epoch},
            {"number", message.number},
            {"group_number", message.group_number},
            {"ready", message.ready},
            {"missing_units", message.missing_units},
            {"missing_members", message.missing_members},
            {"int32_lanes", message.int32_lanes},
            {"hold_ms", message.hold_ms},
            {"pace", to_json(message.pace)},
            {"edges", to_json(message.edges)},
            {"statements", to_json(message.statements)}};
}

Json to_json(const wire::Refused& message) {
    return {{"nonce", message.nonce},
            {"job", message.job},
            {"token", message.token},
            {"channel", message.channel},
            {"reason", wire::to_string(message.reason)},
            {"text", message.text}};
}

Json to_json(const wire::Leave& message) {
    return {{"nonce", message.nonce},   {"job", message.job},
            {"token", message.token},   {"channel", message.channel},
            {"epoch", message.epoch},   {"unit", message.unit},
            {"member", message.member}, {"edges", to_json(message.edges)}};
}

Json to_json(const wire::Retry& message) {
    return {{"nonce", message.nonce},
            {"job", message.job},
            {"token", message.token},
            {"channel", message.channel},
            {"cookie", message.cookie}};
}

Json to_json(const wire::Hello& message) { return {{"nonce", message.nonce}}; }

Json to_json(const std::vector<wire::PathSwitch>& path) {
    Json list = Json::array();
    for (const wire::PathSwitch& next : path) {
        list.push_back({{"id", next.id}, {"aggregators", next.aggregators}, {"lanes", next.lanes}});
    }
    return list;
}

Json to_json(const wire::Welcome& message) {
    return {{"nonce", message.nonce},
            {"received_bytes", message.received_bytes},
            {"path", to_json(message.path)},
            {"software", message.software}};
}

Json to_json(const wire::Stats& message) {
    return {{"nonce", message.nonce}, {"snapshot", message.snapshot}, {"part", message.part}};
}

Json to_json(const wire::Report& message) {
    return {{"nonce", message.nonce},
            {"snapshot", message.snapshot},
            {"part", message.part},
            {"parts", message.parts},
            {"text", message.text}};
}

Json to_json(const wire::Endpoint& endpoint) {
    return {{"family", endpoint.family}, {"port", endpoint.port}, {"host", host_of(endpoint)}};
}

Json to_json(const wire::RankFacts& message) {
    return {{"job", message.job},
            {"token", message.token},
            {"shares", message.shares},
            {"starts_switch", message.starts_switch},
            {"kernel", message.kernel},
            {"host_name", message.host_name},
            {"socket", message.socket},
            {"secret_low", message.secret_low},
            {"secret_high", message.secret_high},
            {"switch_address", message.switch_address},
            {"terms", message.terms}};
}

Json to_json(const wire::SharedFacts& message) { return {{"problem", message.problem}}; }

Json to_json(const wire::NetworkFacts& message) {
    Json sockets = Json::array();
    for (const wire::Endpoint& socket : message.sockets) sockets.push_back(to_json(socket));
    return {{"path", to_json(message.path)},
            {"lanes", message.lanes},
            {"serves", message.serves},
            {"hosts_switch", message.hosts_switch},
            {"host", message.host},
            {"rack", message.rack},
            {"uplink", message.uplink},
            {"host_bits_per_s", message.host_bits_per_s},
            {"uplink_bits_per_s", message.uplink_bits_per_s},
            {"sockets", sockets}};
}

Json to_json(const wire::ServerFacts& message) { return {{"address", to_json(message.address)}}; }

Json to_json(const wire::ReachedFacts& message) {
    Json faults = Json::array();
    for (const wire::ReachFault& fault : message.faults) faults.push_back({{"to", fault.to}, {"why", fault.why}});
    return {{"lanes", message.lanes},
            {"faults", faults},
            {"leaf", to_json(message.leaf)},
            {"leaf_aggregators", message.leaf_aggregators},
            {"leaf_lanes", message.leaf_lanes}};
}

Json to_json(const wire::JobPlan& message) {
    return {{"job", message.job},
            {"channels", message.channels},
            {"lanes", message.lanes},
            {"window", message.window},
            {"aggregators", message.aggregators},
            {"units", message.units},
            {"levels", message.levels},
            {"layout", message.layout}};
}

Json to_json(const wire::GaveUp& message) {
    return {{"rank", message.rank}, {"reason", message.reason}, {"text", message.text}};
}

template <class Message, class Type>
std::optional<std::string> text_of(const std::optional<Message>& message, Type type) {
    if (!message) return std::nullopt;
    Json fields{{"type", wire::to_string(type)}};
    fields.update(to_json(*message));
    return fields.dump();
}

}  // namespace

namespace {

std::optional<std::string> store_fields(const std::vector<std::byte>& bytes) {
    if (bytes.size() < wire::control_prefix_bytes) return std::nullopt;
    const auto type = static_cast<StoreType>(std::to_integer<unsigned>(bytes[1]));
    switch (type) {
        case StoreType::facts: return text_of(wire::decode<wire::RankFacts>(bytes), type);
        case StoreType::shared: return text_of(wire::decode<wire::SharedFacts>(bytes), type);
        case StoreType::network: return text_of(wire::decode<wire::NetworkFacts>(bytes), type);
        case StoreType::server: return text_of(wire::decode<wire::ServerFacts>(bytes), type);
        case StoreType::reached: return text_of(wire::decode<wire::ReachedFacts>(bytes), type);
        case StoreType::plan: return text_of(wire::decode<wire::JobPlan>(bytes), type);
        case StoreType::gave_up: return text_of(wire::decode<wire::GaveUp>(bytes), type);
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> control_fields(const std::vector<std::byte>& bytes) {
    const auto type = wire::control_type(bytes);
    if (!type) return store_fields(bytes);
    switch (*type) {
        case ControlType::join: return text_of(wire::decode<wire::Join>(bytes), *type);
        case ControlType::joined: return text_of(wire::decode<wire::Joined>(bytes), *type);
        case ControlType::refused: return text_of(wire::decode<wire::Refused>(bytes), *type);
        case ControlType::leave: return text_of(wire::decode<wire::Leave>(bytes), *type);
        case ControlType::hello: return text_of(wire::decode<wire::Hello>(bytes), *type);
        case ControlType::welcome: return text_of(wire::decode<wire::Welcome>(bytes), *type);
        case ControlType::stats: return text_of(wire::decode<wire::Stats>(bytes), *type);
        case ControlType::report: return text_of(wire::decode<wire::Report>(bytes), *type);
        case ControlType::retry: return text_of(wire::decode<wire::Retry>(bytes), *type);
    }
    return std::nullopt;
}

}  // namespace atp::conformance
