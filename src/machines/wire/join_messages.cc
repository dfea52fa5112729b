// SPDX-License-Identifier: Apache-2.0
#include "wire/join_messages.h"

#include <algorithm>

#include "wire/control.h"
#include "wire/join_rules.h"

namespace atp::wire {

// tools/write_wire writes the fields from src/machines/wire/wire.toml.
namespace {

void write(ByteWriter& writer, const Endpoint& value) {
    writer.u8(value.family);
    writer.u16(value.port);
    writer.raw(value.host);
}

void read(ByteReader& reader, Endpoint& value) {
    value.family = reader.u8();
    reader.check(value.family == 0 || value.family == 4 || value.family == 6);
    value.port = reader.u16();
    reader.raw(value.host);
}

void write(ByteWriter& writer, const Edge& value) {
    writer.u8(static_cast<std::uint8_t>(value.kind));
    writer.u8(static_cast<std::uint8_t>(value.evidence));
    writer.u8(value.unit);
    writer.u8(value.member);
    writer.u32(value.silent_ms);
    writer.u32(value.detail);
    write(writer, value.at);
}

void read(ByteReader& reader, Edge& value) {
    const std::uint8_t kind_number = reader.u8();
    reader.check(kind_number >= 1 && kind_number <= 5);
    value.kind = static_cast<EdgeKind>(kind_number);
    const std::uint8_t evidence_number = reader.u8();
    reader.check(evidence_number >= 1 && evidence_number <= 6);
    value.evidence = static_cast<Evidence>(evidence_number);
    value.unit = reader.u8();
    reader.check(value.unit < ATP_BITMAP_BITS);
    value.member = reader.u8();
    reader.check(value.member < ATP_BITMAP_BITS);
    value.silent_ms = reader.u32();
    value.detail = reader.u32();
    read(reader, value.at);
}

void write(ByteWriter& writer, const Statement& value) {
    writer.u16(value.count);
    writer.u8(value.unit);
    writer.u8(value.member);
    writer.text(value.text, max_statement_bytes);
}

void read(ByteReader& reader, Statement& value) {
    value.count = reader.u16();
    reader.check(value.count != 0);
    value.unit = reader.u8();
    reader.check(value.unit < ATP_BITMAP_BITS);
    value.member = reader.u8();
    reader.check(value.member < ATP_BITMAP_BITS);
    value.text = reader.text(max_statement_bytes);
}

void write(ByteWriter& writer, const Pace& value) {
    writer.u8(value.share_percent);
    writer.u8(value.last_percent);
    writer.u8(value.unit);
    writer.u8(value.member);
    writer.flag(value.whole_unit);
    writer.u16(value.waited_permille);
}

void read(ByteReader& reader, Pace& value) {
    value.share_percent = reader.u8();
    reader.check(value.share_percent <= whole_percent);
    value.last_percent = reader.u8();
    reader.check(value.last_percent <= whole_percent);
    value.unit = reader.u8();
    reader.check(value.unit < ATP_BITMAP_BITS);
    value.member = reader.u8();
    reader.check(value.member < ATP_BITMAP_BITS);
    value.whole_unit = reader.flag();
    value.waited_permille = reader.u16();
    reader.check(value.waited_permille <= whole_permille);
}

void write(ByteWriter& writer, const JoiningUnit& value) {
    writer.u8(value.unit);
    writer.flag(value.direct);
    writer.u32(value.members);
    writer.u32(value.mask0);
    for (const std::uint16_t each : value.ranks) writer.u16(each);
}

void read(ByteReader& reader, JoiningUnit& value) {
    value.unit = reader.u8();
    value.direct = reader.flag();
    value.members = reader.u32();
    value.mask0 = reader.u32();
    for (auto rest = value.members; rest != 0 && reader.ok(); rest &= rest - 1) value.ranks.push_back(reader.u16());
    reader.check(unit_fits(value));
}

void write(ByteWriter& writer, const ChannelTerms& value) {
    writer.u32(value.job);
    writer.u64(value.token);
    writer.u16(value.channel);
    writer.u16(value.lanes);
    writer.u8(value.window_log2);
    writer.flag(value.audit);
    writer.u32(value.aggregators);
    writer.u32(value.first_seq);
    writer.u32(value.mask1);
    writer.f64(value.scale);
    write(writer, value.server);
    write(writer, value.group);
    write(writer, value.root);
}

void read(ByteReader& reader, ChannelTerms& value) {
    value.job = reader.u32();
    value.token = reader.u64();
    reader.check(value.token != 0);
    value.channel = reader.u16();
    value.lanes = reader.u16();
    reader.check(value.lanes != 0 && value.lanes <= ATP_MAX_LANES);
    value.window_log2 = reader.u8();
    reader.check(value.window_log2 <= ATP_WINDOW_LOG2_MAX);
    value.audit = reader.flag();
    value.aggregators = reader.u32();
    value.first_seq = reader.u32();
    value.mask1 = reader.u32();
    reader.check(has_no_gap(value.mask1));
    value.scale = reader.f64();
    reader.check(is_positive_and_finite(value.scale));
    read(reader, value.server);
    read(reader, value.group);
    read(reader, value.root);
    reader.check(terms_fit(value));
}

void write(ByteWriter& writer, const Join& value) {
    writer.u64(value.nonce);
    write(writer, value.terms);
    writer.u64(value.cookie);
    writer.u32(value.epoch);
    writer.u8(value.level);
    writer.flag(value.begun);
    writer.flag(value.receives_group);
    writer.flag(value.int32_path);
    const std::size_t unit_count = std::min<std::size_t>(value.units.size(), ATP_BITMAP_BITS);
    writer.u8(static_cast<std::uint8_t>(unit_count));
    for (std::size_t i = 0; i < unit_count; ++i) write(writer, value.units[i]);
    write(writer, value.pace);
    const std::size_t edge_count = std::min<std::size_t>(value.edges.size(), max_edges);
    writer.u8(static_cast<std::uint8_t>(edge_count));
    for (std::size_t i = 0; i < edge_count; ++i) write(writer, value.edges[i]);
    const std::size_t statement_count = std::min<std::size_t>(value.statements.size(), max_statements);
    writer.u8(static_cast<std::uint8_t>(statement_count));
    for (std::size_t i = 0; i < statement_count; ++i) write(writer, value.statements[i]);
}

void read(ByteReader& reader, Join& value) {
    value.nonce = reader.u64();
    read(reader, value.terms);
    value.cookie = reader.u64();
    value.epoch = reader.u32();
    value.level = reader.u8();
    reader.check(value.level <= ATP_LEVELS);
    value.begun = reader.flag();
    value.receives_group = reader.flag();
    value.int32_path = reader.flag();
    const std::size_t unit_count = reader.u8();
    reader.check(unit_count >= 1 && unit_count <= ATP_BITMAP_BITS);
    for (std::size_t i = 0; i < unit_count && reader.ok(); ++i) read(reader, value.units.emplace_back());
    read(reader, value.pace);
    const std::size_t edge_count = reader.u8();
    reader.check(edge_count <= max_edges);
    for (std::size_t i = 0; i < edge_count && reader.ok(); ++i) read(reader, value.edges.emplace_back());
    const std::size_t statement_count = reader.u8();
    reader.check(statement_count <= max_statements);
    for (std::size_t i = 0; i < statement_count && reader.ok(); ++i) read(reader, value.statements.emplace_back());
    reader.check(join_fits(value));
}

void write(ByteWriter& writer, const Joined& value) {
    writer.u64(value.nonce);
    writer.u32(value.job);
    writer.u64(value.token);
    writer.u16(value.channel);
    writer.u32(value.epoch);
    writer.u32(value.number);
    writer.u64(value.group_number);
    writer.flag(value.ready);
    writer.u32(value.missing_units);
    writer.u32(value.missing_members);
    writer.flag(value.int32_lanes);
    writer.u32(value.hold_ms);
    write(writer, value.pace);
    const std::size_t edge_count = std::min<std::size_t>(value.edges.size(), max_edges);
    writer.u8(static_cast<std::uint8_t>(edge_count));
    for (std::size_t i = 0; i < edge_count; ++i) write(writer, value.edges[i]);
    const std::size_t statement_count = std::min<std::size_t>(value.statements.size(), max_statements);
    writer.u8(static_cast<std::uint8_t>(statement_count));
    for (std::size_t i = 0; i < statement_count; ++i) write(writer, value.statements[i]);
}

void read(ByteReader& reader, Joined& value) {
    value.nonce = reader.u64();
    value.job = reader.u32();
    value.token = reader.u64();
    value.channel = reader.u16();
    value.epoch = reader.u32();
    value.number = reader.u32();
    value.group_number = reader.u64();
    value.ready = reader.flag();
    value.missing_units = reader.u32();
    value.missing_members = reader.u32();
    value.int32_lanes = reader.flag();
    value.hold_ms = reader.u32();
    read(reader, value.pace);
    const std::size_t edge_count = reader.u8();
    reader.check(edge_count <= max_edges);
    for (std::size_t i = 0; i < edge_count && reader.ok(); ++i) read(reader, value.edges.emplace_back());
    const std::size_t statement_count = reader.u8();
    reader.check(statement_count <= max_statements);
    for (std::size_t i = 0; i < statement_count && reader.ok(); ++i) read(reader, value.statements.emplace_back());
}

void write(ByteWriter& writer, const Refused& value) {
    writer.u64(value.nonce);
    writer.u32(value.job);
    writer.u64(value.token);
    writer.u16(value.channel);
    writer.u8(static_cast<std::uint8_t>(value.reason));
    writer.text(value.text, max_refusal_bytes);
}

void read(ByteReader& reader, Refused& value) {
    value.nonce = reader.u64();
    value.job = reader.u32();
    value.token = reader.u64();
    value.channel = reader.u16();
    const std::uint8_t reason_number = reader.u8();
    reader.check(reason_number >= 1 && reason_number <= 9);
    value.reason = static_cast<Refusal>(reason_number);
    value.text = reader.text(max_refusal_bytes);
}

void write(ByteWriter& writer, const Leave& value) {
    writer.u64(value.nonce);
    writer.u32(value.job);
    writer.u64(value.token);
    writer.u16(value.channel);
    writer.u32(value.epoch);
    writer.u8(value.unit);
    writer.u8(value.member);
    const std::size_t edge_count = std::min<std::size_t>(value.edges.size(), max_edges);
    writer.u8(static_cast<std::uint8_t>(edge_count));
    for (std::size_t i = 0; i < edge_count; ++i) write(writer, value.edges[i]);
}

void read(ByteReader& reader, Leave& value) {
    value.nonce = reader.u64();
    value.job = reader.u32();
    value.token = reader.u64();
    reader.check(value.token != 0);
    value.channel = reader.u16();
    value.epoch = reader.u32();
    value.unit = reader.u8();
    reader.check(value.unit < ATP_BITMAP_BITS);
    value.member = reader.u8();
    reader.check(value.member < ATP_BITMAP_BITS);
    const std::size_t edge_count = reader.u8();
    reader.check(edge_count <= max_edges);
    for (std::size_t i = 0; i < edge_count && reader.ok(); ++i) read(reader, value.edges.emplace_back());
}

void write(ByteWriter& writer, const Retry& value) {
    writer.u64(value.nonce);
    writer.u32(value.job);
    writer.u64(value.token);
    writer.u16(value.channel);
    writer.u64(value.cookie);
}

void read(ByteReader& reader, Retry& value) {
    value.nonce = reader.u64();
    value.job = reader.u32();
    value.token = reader.u64();
    value.channel = reader.u16();
    value.cookie = reader.u64();
    reader.check(value.cookie != 0);
}

}  // namespace

std::size_t encode(const Join& message, std::span<std::byte> bytes, std::size_t padded_bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, ControlType::join);
    write(writer, message);
    return writer.finish(padded_bytes);
}

std::optional<Join> decode_join(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, ControlType::join);
    std::optional<Join> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const Joined& message, std::span<std::byte> bytes, std::size_t padded_bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, ControlType::joined);
    write(writer, message);
    return writer.finish(padded_bytes);
}

std::optional<Joined> decode_joined(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, ControlType::joined);
    std::optional<Joined> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const Refused& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, ControlType::refused);
    write(writer, message);
    return writer.finish();
}

std::optional<Refused> decode_refused(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, ControlType::refused);
    std::optional<Refused> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const Leave& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, ControlType::leave);
    write(writer, message);
    return writer.finish();
}

std::optional<Leave> decode_leave(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, ControlType::leave);
    std::optional<Leave> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const Retry& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, ControlType::retry);
    write(writer, message);
    return writer.finish();
}

std::optional<Retry> decode_retry(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, ControlType::retry);
    std::optional<Retry> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

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
