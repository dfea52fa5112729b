// SPDX-License-Identifier: Apache-2.0
// The fields of control messages as JSON.
#include <nlohmann/json.hpp>

#include "control_vectors.h"

using Json = nlohmann::ordered_json;

// FIELDS(TYPE, MEMBER...): a TYPE is an object with these members, in this order. The JSON library has such a macro
// only for objects that it sorts.
#define FIELDS(type, ...)                                                        \
    static void to_json(Json& nlohmann_json_j, const type& nlohmann_json_t) {    \
        NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(NLOHMANN_JSON_TO, __VA_ARGS__)) \
    }

// The JSON library finds these functions beside the types.
namespace atp::wire {
static Json host_of(const Endpoint& endpoint) {
    Json host = Json::array();
    for (const std::byte byte : endpoint.host) host.push_back(std::to_integer<unsigned>(byte));
    return host;
}

// Adds the endpoint as three fields.
static void add(Json& fields, const std::string& name, const Endpoint& endpoint) {
    fields[name + "_family"] = endpoint.family;
    fields[name + "_port"] = endpoint.port;
    fields[name + "_host"] = host_of(endpoint);
}

static void to_json(Json& fields, const Endpoint& endpoint) {
    fields = {{"family", endpoint.family}, {"port", endpoint.port}, {"host", host_of(endpoint)}};
}

static void to_json(Json& fields, const Edge& edge) {
    fields = {{"kind", to_string(edge.kind)}, {"evidence", to_string(edge.evidence)}, {"unit", edge.unit},
              {"member", edge.member},        {"silent_ms", edge.silent_ms},          {"detail", edge.detail}};
    add(fields, "at", edge.at);
}

FIELDS(Pace, share_percent, last_percent, unit, member, whole_unit, waited_permille)
FIELDS(Statement, count, unit, member, text)
FIELDS(JoiningUnit, unit, direct, members, mask0, ranks)
FIELDS(PathSwitch, id, aggregators, lanes)
FIELDS(ReachFault, to, why)

FIELDS(ChannelTerms, job, token, channel, lanes, window_log2, audit, aggregators, first_seq, mask1, scale)

static void to_json(Json& fields, const Join& join) {
    fields["nonce"] = join.nonce;
    fields.update(Json(join.terms));
    add(fields, "server", join.terms.server);
    add(fields, "group", join.terms.group);
    add(fields, "root", join.terms.root);
    fields.update({{"cookie", join.cookie},
                   {"epoch", join.epoch},
                   {"level", join.level},
                   {"begun", join.begun},
                   {"hears_group", join.receives_group},
                   {"int32_path", join.int32_path},
                   {"ticket", join.ticket},
                   {"units", join.units},
                   {"pace", join.pace},
                   {"edges", join.edges},
                   {"statements", join.statements},
                   {"job_name", join.job_name}});
}

static void to_json(Json& fields, Refusal reason) { fields = to_string(reason); }

FIELDS(Joined, nonce, job, token, channel, epoch, number, group_number, ready, missing_units, missing_members,
       int32_lanes, hold_ms, ticket, pace, edges, statements)
FIELDS(Refused, nonce, job, token, channel, reason, text)
FIELDS(Leave, nonce, job, token, channel, epoch, unit, member, edges)
FIELDS(Retry, nonce, job, token, channel, cookie, boot, name)
FIELDS(Hello, nonce)
FIELDS(Welcome, nonce, received_bytes, path, software)
FIELDS(Stats, nonce, snapshot, part, cookie)
FIELDS(Report, nonce, snapshot, part, parts, text)
FIELDS(RankFacts, job, token, first_group, shares, starts_switch, kernel, host_name, socket, secret_low, secret_high,
       switch_address, terms)
FIELDS(SharedFacts, problem)
FIELDS(NetworkFacts, path, lanes, serves, hosts_switch, host, rack, uplink, host_bits_per_s, uplink_bits_per_s, sockets)
FIELDS(ServerFacts, address)
FIELDS(ReachedFacts, lanes, faults, leaf, leaf_aggregators, leaf_lanes)
FIELDS(JobPlan, job, channels, lanes, window, aggregators, units, levels, layout)
FIELDS(GaveUp, rank, reason, text)

}  // namespace atp::wire

namespace atp::conformance {
namespace {

template <class Message>
std::optional<std::string> text_of(const std::vector<std::byte>& bytes, std::string_view type) {
    const auto message = wire::decode<Message>(bytes);
    if (!message) return std::nullopt;
    Json fields{{"type", type}};
    fields.update(Json(*message));
    return fields.dump();
}

std::optional<std::string> store_fields(const std::vector<std::byte>& bytes) {
    using wire::StoreType;
    if (bytes.size() < wire::control_prefix_bytes) return std::nullopt;
    const auto type = static_cast<StoreType>(std::to_integer<unsigned>(bytes[1]));
    switch (type) {
        case StoreType::facts: return text_of<wire::RankFacts>(bytes, to_string(type));
        case StoreType::shared: return text_of<wire::SharedFacts>(bytes, to_string(type));
        case StoreType::network: return text_of<wire::NetworkFacts>(bytes, to_string(type));
        case StoreType::server: return text_of<wire::ServerFacts>(bytes, to_string(type));
        case StoreType::reached: return text_of<wire::ReachedFacts>(bytes, to_string(type));
        case StoreType::plan: return text_of<wire::JobPlan>(bytes, to_string(type));
        case StoreType::gave_up: return text_of<wire::GaveUp>(bytes, to_string(type));
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> control_fields(const std::vector<std::byte>& bytes) {
    using wire::ControlType;
    const auto type = wire::control_type(bytes);
    if (!type) return store_fields(bytes);
    switch (*type) {
        case ControlType::join: return text_of<wire::Join>(bytes, to_string(*type));
        case ControlType::joined: return text_of<wire::Joined>(bytes, to_string(*type));
        case ControlType::refused: return text_of<wire::Refused>(bytes, to_string(*type));
        case ControlType::leave: return text_of<wire::Leave>(bytes, to_string(*type));
        case ControlType::hello: return text_of<wire::Hello>(bytes, to_string(*type));
        case ControlType::welcome: return text_of<wire::Welcome>(bytes, to_string(*type));
        case ControlType::stats: return text_of<wire::Stats>(bytes, to_string(*type));
        case ControlType::report: return text_of<wire::Report>(bytes, to_string(*type));
        case ControlType::retry: return text_of<wire::Retry>(bytes, to_string(*type));
    }
    return std::nullopt;
}

}  // namespace atp::conformance
