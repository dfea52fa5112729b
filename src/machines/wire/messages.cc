// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "wire/bytes.h"
#include "wire/control.h"
#include "wire/message_code.h"
#include "wire/message_rules.h"

namespace atp::wire {
namespace {

// The codec is a ByteWriter, which reads the value, or a ByteReader, which changes it.
template <class Codec, class Value>
using Of = typename std::remove_reference_t<Codec>::template Of<Value>;

// tools/write_wire writes the fields from src/machines/wire/wire.toml.

void fields(auto& codec, Of<decltype(codec), Endpoint>& value) {
    codec.field(value.family);
    codec.one_of(value.family, {0, 4, 6});
    codec.field(value.port);
    codec.field(value.host);
}

void fields(auto& codec, Of<decltype(codec), Edge>& value) {
    codec.field(value.kind, 1, 5);
    codec.field(value.evidence, 1, 6);
    codec.field(value.unit, 0, ATP_BITMAP_BITS - 1);
    codec.field(value.member, 0, ATP_BITMAP_BITS - 1);
    codec.field(value.silent_ms);
    codec.field(value.detail);
    fields(codec, value.at);
}

void fields(auto& codec, Of<decltype(codec), Statement>& value) {
    codec.field(value.count, 1);
    codec.field(value.unit, 0, ATP_BITMAP_BITS - 1);
    codec.field(value.member, 0, ATP_BITMAP_BITS - 1);
    codec.field(value.text, max_statement_bytes);
}

void fields(auto& codec, Of<decltype(codec), Pace>& value) {
    codec.field(value.share_percent, 0, whole_percent);
    codec.field(value.last_percent, 0, whole_percent);
    codec.field(value.unit, 0, ATP_BITMAP_BITS - 1);
    codec.field(value.member, 0, ATP_BITMAP_BITS - 1);
    codec.field(value.whole_unit);
    codec.field(value.waited_permille, 0, whole_permille);
}

void fields(auto& codec, Of<decltype(codec), JoiningUnit>& value) {
    codec.field(value.unit);
    codec.field(value.direct);
    codec.field(value.members);
    codec.field(value.mask0);
    codec.resize(value.ranks, std::popcount(value.members));
    for (auto& each : value.ranks) codec.field(each);
    codec.rule(unit_fits, value);
}

void fields(auto& codec, Of<decltype(codec), ChannelTerms>& value) {
    codec.field(value.job);
    codec.field(value.token, 1);
    codec.field(value.channel);
    codec.field(value.lanes, 1, ATP_MAX_LANES);
    codec.field(value.window_log2, 0, ATP_WINDOW_LOG2_MAX);
    codec.field(value.audit);
    codec.field(value.aggregators);
    codec.field(value.first_seq);
    codec.field(value.mask1);
    codec.rule(has_no_gap, value.mask1);
    codec.field(value.scale);
    codec.rule(is_positive_and_finite, value.scale);
    fields(codec, value.server);
    fields(codec, value.group);
    fields(codec, value.root);
    codec.rule(terms_fit, value);
}

void fields(auto& codec, Of<decltype(codec), JoinCode>& value) {
    codec.field(value.key, 1);
    codec.field(value.charged);
    codec.field(value.name, max_key_name_bytes);
    codec.field(value.code);
}

void fields(auto& codec, Of<decltype(codec), JoinedCode>& value) {
    codec.field(value.cookie, 1);
    codec.field(value.boot, 1);
    codec.field(value.key, 1);
    codec.field(value.charged, 1);
    codec.field(value.code);
}

void fields(auto& codec, Of<decltype(codec), PlainCode>& value) { codec.field(value.code); }

void fields(auto& codec, Of<decltype(codec), PathSwitch>& value) {
    codec.field(value.id);
    codec.field(value.aggregators);
    codec.field(value.lanes);
}

void fields(auto& codec, Of<decltype(codec), ReachFault>& value) {
    codec.field(value.to, 0, max_ranks - 1);
    codec.field(value.why, max_cause_bytes);
}

void fields(auto& codec, Of<decltype(codec), Join>& value) {
    codec.field(value.nonce);
    fields(codec, value.terms);
    codec.field(value.cookie);
    codec.field(value.epoch);
    codec.field(value.level, 0, ATP_LEVELS);
    codec.field(value.begun);
    codec.field(value.receives_group);
    codec.field(value.int32_path);
    codec.field(value.ticket);
    const std::size_t unit_count = codec.count(std::uint8_t{}, value.units, 1, ATP_BITMAP_BITS);
    for (auto& each : std::span(value.units).first(unit_count)) fields(codec, each);
    fields(codec, value.pace);
    const std::size_t edge_count = codec.count(std::uint8_t{}, value.edges, 0, max_edges);
    for (auto& each : std::span(value.edges).first(edge_count)) fields(codec, each);
    const std::size_t statement_count = codec.count(std::uint8_t{}, value.statements, 0, max_statements);
    for (auto& each : std::span(value.statements).first(statement_count)) fields(codec, each);
    codec.later(value.job_name, max_job_name_bytes);
    codec.rule(join_fits, value);
}

void fields(auto& codec, Of<decltype(codec), Joined>& value) {
    codec.field(value.nonce);
    codec.field(value.job);
    codec.field(value.token);
    codec.field(value.channel);
    codec.field(value.epoch);
    codec.field(value.number);
    codec.field(value.group_number);
    codec.field(value.ready);
    codec.field(value.missing_units);
    codec.field(value.missing_members);
    codec.field(value.int32_lanes);
    codec.field(value.hold_ms);
    codec.rule(is_hold, value.hold_ms);
    codec.field(value.ticket);
    fields(codec, value.pace);
    const std::size_t edge_count = codec.count(std::uint8_t{}, value.edges, 0, max_edges);
    for (auto& each : std::span(value.edges).first(edge_count)) fields(codec, each);
    const std::size_t statement_count = codec.count(std::uint8_t{}, value.statements, 0, max_statements);
    for (auto& each : std::span(value.statements).first(statement_count)) fields(codec, each);
}

void fields(auto& codec, Of<decltype(codec), Refused>& value) {
    codec.field(value.nonce);
    codec.field(value.job);
    codec.field(value.token);
    codec.field(value.channel);
    codec.field(value.reason, 1, 10);
    codec.field(value.text, max_refusal_bytes);
}

void fields(auto& codec, Of<decltype(codec), Leave>& value) {
    codec.field(value.nonce);
    codec.field(value.job);
    codec.field(value.token, 1);
    codec.field(value.channel);
    codec.field(value.epoch);
    codec.field(value.unit, 0, ATP_BITMAP_BITS - 1);
    codec.field(value.member, 0, ATP_BITMAP_BITS - 1);
    const std::size_t edge_count = codec.count(std::uint8_t{}, value.edges, 0, max_edges);
    for (auto& each : std::span(value.edges).first(edge_count)) fields(codec, each);
}

void fields(auto& codec, Of<decltype(codec), Hello>& value) { codec.field(value.nonce); }

void fields(auto& codec, Of<decltype(codec), Welcome>& value) {
    codec.field(value.nonce);
    codec.field(value.received_bytes);
    const std::size_t switch_count = codec.count(std::uint8_t{}, value.path, 1, max_path_switches);
    for (auto& each : std::span(value.path).first(switch_count)) fields(codec, each);
    codec.field(value.software, max_software_bytes);
}

void fields(auto& codec, Of<decltype(codec), Stats>& value) {
    codec.field(value.nonce);
    codec.field(value.snapshot);
    codec.field(value.part);
    codec.field(value.cookie);
}

void fields(auto& codec, Of<decltype(codec), Report>& value) {
    codec.field(value.nonce);
    codec.field(value.snapshot);
    codec.field(value.part);
    codec.field(value.parts);
    codec.field(value.text, report_part_bytes);
    codec.rule(report_fits, value);
}

void fields(auto& codec, Of<decltype(codec), Retry>& value) {
    codec.field(value.nonce);
    codec.field(value.job);
    codec.field(value.token);
    codec.field(value.channel);
    codec.field(value.cookie, 1);
    codec.field(value.boot);
    codec.field(value.name, max_key_name_bytes);
}

void fields(auto& codec, Of<decltype(codec), RankFacts>& value) {
    codec.field(value.job);
    codec.field(value.token, 1);
    codec.field(value.first_group);
    codec.field(value.shares);
    codec.field(value.starts_switch);
    codec.field(value.kernel, max_word_bytes);
    codec.field(value.host_name, max_word_bytes);
    codec.field(value.socket, max_word_bytes);
    codec.field(value.secret_low);
    codec.field(value.secret_high);
    codec.field(value.switch_address, max_word_bytes);
    codec.field(value.terms, max_terms_bytes);
}

void fields(auto& codec, Of<decltype(codec), SharedFacts>& value) { codec.field(value.problem, max_cause_bytes); }

void fields(auto& codec, Of<decltype(codec), NetworkFacts>& value) {
    const std::size_t switch_count = codec.count(std::uint8_t{}, value.path, 0, max_path_switches);
    for (auto& each : std::span(value.path).first(switch_count)) fields(codec, each);
    codec.field(value.lanes);
    codec.field(value.serves);
    codec.field(value.hosts_switch);
    codec.field(value.host, max_word_bytes);
    codec.field(value.rack, max_word_bytes);
    codec.field(value.uplink, max_word_bytes);
    codec.field(value.host_bits_per_s);
    codec.rule(is_rate, value.host_bits_per_s);
    codec.field(value.uplink_bits_per_s);
    codec.rule(is_rate, value.uplink_bits_per_s);
    const std::size_t socket_count = codec.count(std::uint8_t{}, value.sockets, 0, max_sockets);
    for (auto& each : std::span(value.sockets).first(socket_count)) fields(codec, each);
    codec.rule(network_fits, value);
}

void fields(auto& codec, Of<decltype(codec), ServerFacts>& value) { fields(codec, value.address); }

void fields(auto& codec, Of<decltype(codec), ReachedFacts>& value) {
    const std::size_t server_count = codec.count(std::uint16_t{}, value.lanes, 0, max_ranks);
    for (auto& each : std::span(value.lanes).first(server_count)) codec.field(each);
    const std::size_t fault_count = codec.count(std::uint8_t{}, value.faults, 0, max_faults);
    for (auto& each : std::span(value.faults).first(fault_count)) fields(codec, each);
    fields(codec, value.leaf);
    codec.field(value.leaf_aggregators);
    codec.field(value.leaf_lanes);
}

void fields(auto& codec, Of<decltype(codec), JobPlan>& value) {
    codec.field(value.job);
    codec.field(value.channels, 1);
    codec.field(value.lanes, 1, ATP_MAX_LANES);
    codec.field(value.window, 1);
    codec.field(value.aggregators);
    codec.field(value.units, 1, ATP_BITMAP_BITS);
    codec.field(value.levels, 1, ATP_LEVELS);
    codec.field(value.layout, 0, 3);
}

void fields(auto& codec, Of<decltype(codec), GaveUp>& value) {
    codec.field(value.rank, 0, max_ranks - 1);
    codec.field(value.reason, 1, most_reason);
    codec.field(value.text, max_notice_bytes);
}

// End of the written part.

constexpr std::size_t least_bytes(const auto& /*message*/) { return 0; }

// tools/write_wire writes the types from src/machines/wire/wire.toml.

constexpr ControlType type_of(const Join&) { return ControlType::join; }
constexpr ControlType type_of(const Joined&) { return ControlType::joined; }
constexpr ControlType type_of(const Refused&) { return ControlType::refused; }
constexpr ControlType type_of(const Leave&) { return ControlType::leave; }
constexpr ControlType type_of(const Hello&) { return ControlType::hello; }
constexpr ControlType type_of(const Welcome&) { return ControlType::welcome; }
constexpr ControlType type_of(const Stats&) { return ControlType::stats; }
constexpr ControlType type_of(const Report&) { return ControlType::report; }
constexpr ControlType type_of(const Retry&) { return ControlType::retry; }
constexpr StoreType type_of(const RankFacts&) { return StoreType::facts; }
constexpr StoreType type_of(const SharedFacts&) { return StoreType::shared; }
constexpr StoreType type_of(const NetworkFacts&) { return StoreType::network; }
constexpr StoreType type_of(const ServerFacts&) { return StoreType::server; }
constexpr StoreType type_of(const ReachedFacts&) { return StoreType::reached; }
constexpr StoreType type_of(const JobPlan&) { return StoreType::plan; }
constexpr StoreType type_of(const GaveUp&) { return StoreType::gave_up; }
constexpr std::size_t least_bytes(const Stats&) { return 1'046; }

// End of the written part.

template <class Type>
void prefix(auto& codec, Type type) {
    std::uint8_t version = control_version;
    codec.field(version, control_version, control_version);
    const auto number = static_cast<std::uint8_t>(type);
    codec.field(type, number, number);
    codec.zero(control_prefix_bytes - sizeof version - sizeof number);  // no code: see message_code.h
}

constexpr std::size_t code_at_offset = 2;
static_assert(code_at_offset + 2 == control_prefix_bytes);

// The fields of a message end where its code begins.
std::span<const std::byte> without_code(std::span<const std::byte> bytes) {
    if (bytes.size() < control_prefix_bytes) return bytes;
    const std::size_t at = load_u16(bytes.data() + code_at_offset);
    return at < control_prefix_bytes || at > bytes.size() ? bytes : bytes.first(at);
}

}  // namespace

template <class Message>
std::size_t encode(const Message& message, std::span<std::byte> bytes, std::size_t padded_bytes) {
    ByteWriter writer(bytes);
    prefix(writer, type_of(message));
    fields(writer, message);
    return writer.finish(std::max(padded_bytes, least_bytes(message)));
}

template <class Message>
std::optional<Message> decode(std::span<const std::byte> bytes) {
    ByteReader reader(without_code(bytes));
    std::optional<Message> message(std::in_place);
    prefix(reader, type_of(*message));
    fields(reader, *message);
    if (!reader.ok() || bytes.size() < least_bytes(*message)) message.reset();
    return message;
}

template <class Part>
std::size_t append_code(const Part& part, std::span<std::byte> bytes, std::size_t size) {
    ByteWriter writer(bytes.subspan(size));
    fields(writer, part);
    const std::size_t more = writer.finish();
    if (more == 0) return 0;
    store_u16(bytes.data() + code_at_offset, static_cast<std::uint16_t>(size));
    return size + more;
}

template <class Part>
std::optional<Coded<Part>> code_of(std::span<const std::byte> bytes) {
    if (bytes.size() < control_prefix_bytes) return std::nullopt;
    const std::size_t at = load_u16(bytes.data() + code_at_offset);
    if (at < control_prefix_bytes || at > bytes.size()) return std::nullopt;
    ByteReader reader(bytes.subspan(at));
    Coded<Part> coded;
    fields(reader, coded.part);
    if (!reader.ok()) return std::nullopt;
    coded.covered = bytes.first(bytes.size() - reader.left() - sizeof coded.part.code);
    return coded;
}

template std::size_t append_code(const JoinCode&, std::span<std::byte>, std::size_t);
template std::optional<Coded<JoinCode>> code_of(std::span<const std::byte>);
template std::size_t append_code(const JoinedCode&, std::span<std::byte>, std::size_t);
template std::optional<Coded<JoinedCode>> code_of(std::span<const std::byte>);
template std::size_t append_code(const PlainCode&, std::span<std::byte>, std::size_t);
template std::optional<Coded<PlainCode>> code_of(std::span<const std::byte>);

// tools/write_wire writes the functions from src/machines/wire/wire.toml.

template std::size_t encode(const Join&, std::span<std::byte>, std::size_t);
template std::optional<Join> decode(std::span<const std::byte>);
template std::size_t encode(const Joined&, std::span<std::byte>, std::size_t);
template std::optional<Joined> decode(std::span<const std::byte>);
template std::size_t encode(const Refused&, std::span<std::byte>, std::size_t);
template std::optional<Refused> decode(std::span<const std::byte>);
template std::size_t encode(const Leave&, std::span<std::byte>, std::size_t);
template std::optional<Leave> decode(std::span<const std::byte>);
template std::size_t encode(const Hello&, std::span<std::byte>, std::size_t);
template std::optional<Hello> decode(std::span<const std::byte>);
template std::size_t encode(const Welcome&, std::span<std::byte>, std::size_t);
template std::optional<Welcome> decode(std::span<const std::byte>);
template std::size_t encode(const Stats&, std::span<std::byte>, std::size_t);
template std::optional<Stats> decode(std::span<const std::byte>);
template std::size_t encode(const Report&, std::span<std::byte>, std::size_t);
template std::optional<Report> decode(std::span<const std::byte>);
template std::size_t encode(const Retry&, std::span<std::byte>, std::size_t);
template std::optional<Retry> decode(std::span<const std::byte>);
template std::size_t encode(const RankFacts&, std::span<std::byte>, std::size_t);
template std::optional<RankFacts> decode(std::span<const std::byte>);
template std::size_t encode(const SharedFacts&, std::span<std::byte>, std::size_t);
template std::optional<SharedFacts> decode(std::span<const std::byte>);
template std::size_t encode(const NetworkFacts&, std::span<std::byte>, std::size_t);
template std::optional<NetworkFacts> decode(std::span<const std::byte>);
template std::size_t encode(const ServerFacts&, std::span<std::byte>, std::size_t);
template std::optional<ServerFacts> decode(std::span<const std::byte>);
template std::size_t encode(const ReachedFacts&, std::span<std::byte>, std::size_t);
template std::optional<ReachedFacts> decode(std::span<const std::byte>);
template std::size_t encode(const JobPlan&, std::span<std::byte>, std::size_t);
template std::optional<JobPlan> decode(std::span<const std::byte>);
template std::size_t encode(const GaveUp&, std::span<std::byte>, std::size_t);
template std::optional<GaveUp> decode(std::span<const std::byte>);

std::string_view to_string(Refusal value) {
    switch (value) {
        case Refusal::version: return "version";
        case Refusal::malformed: return "malformed";
        case Refusal::full: return "full";
        case Refusal::token: return "token";
        case Refusal::terms: return "terms";
        case Refusal::place: return "place";
        case Refusal::restarted: return "restarted";
        case Refusal::parent: return "parent";
        case Refusal::unsupported: return "unsupported";
        case Refusal::key: return "key";
    }
    return "unknown";
}

std::string_view to_string(EdgeKind value) {
    switch (value) {
        case EdgeKind::member: return "member";
        case EdgeKind::leaf: return "leaf";
        case EdgeKind::parent: return "parent";
        case EdgeKind::server: return "server";
        case EdgeKind::path_mtu: return "path-mtu";
    }
    return "unknown";
}

std::string_view to_string(Evidence value) {
    switch (value) {
        case Evidence::silence: return "silence";
        case Evidence::left: return "left";
        case Evidence::closed: return "closed";
        case Evidence::too_long: return "too-long";
        case Evidence::one_direction: return "one-direction";
        case Evidence::paused: return "paused";
    }
    return "unknown";
}

// End of the written part.

}  // namespace atp::wire
