// SPDX-License-Identifier: Apache-2.0
#include "wire/formation_messages.h"

#include <algorithm>
#include <cmath>

#include "wire/control.h"

namespace atp::wire {
namespace {

bool is_rate(double bits_per_s) { return std::isfinite(bits_per_s) && bits_per_s >= 0; }

bool network_fits(const NetworkFacts& facts) {
    const bool names_switch = !facts.path.empty();
    return names_switch == (facts.lanes != 0) && (names_switch || !facts.hosts_switch);
}

}  // namespace

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

void write(ByteWriter& writer, const PathSwitch& value) {
    writer.u64(value.id);
    writer.u32(value.aggregators);
    writer.u16(value.lanes);
}

void read(ByteReader& reader, PathSwitch& value) {
    value.id = reader.u64();
    value.aggregators = reader.u32();
    value.lanes = reader.u16();
}

void write(ByteWriter& writer, const ReachFault& value) {
    writer.u16(value.to);
    writer.text(value.why, max_cause_bytes);
}

void read(ByteReader& reader, ReachFault& value) {
    value.to = reader.u16();
    reader.check(value.to < max_ranks);
    value.why = reader.text(max_cause_bytes);
}

void write(ByteWriter& writer, const RankFacts& value) {
    writer.u32(value.job);
    writer.u64(value.token);
    writer.flag(value.shares);
    writer.flag(value.starts_switch);
    writer.text(value.kernel, max_word_bytes);
    writer.text(value.host_name, max_word_bytes);
    writer.text(value.socket, max_word_bytes);
    writer.u64(value.secret_low);
    writer.u64(value.secret_high);
    writer.text(value.switch_address, max_word_bytes);
    writer.text(value.terms, max_terms_bytes);
}

void read(ByteReader& reader, RankFacts& value) {
    value.job = reader.u32();
    value.token = reader.u64();
    reader.check(value.token != 0);
    value.shares = reader.flag();
    value.starts_switch = reader.flag();
    value.kernel = reader.text(max_word_bytes);
    value.host_name = reader.text(max_word_bytes);
    value.socket = reader.text(max_word_bytes);
    value.secret_low = reader.u64();
    value.secret_high = reader.u64();
    value.switch_address = reader.text(max_word_bytes);
    value.terms = reader.text(max_terms_bytes);
}

void write(ByteWriter& writer, const SharedFacts& value) { writer.text(value.problem, max_cause_bytes); }

void read(ByteReader& reader, SharedFacts& value) { value.problem = reader.text(max_cause_bytes); }

void write(ByteWriter& writer, const NetworkFacts& value) {
    const std::size_t switch_count = std::min<std::size_t>(value.path.size(), max_path_switches);
    writer.u8(static_cast<std::uint8_t>(switch_count));
    for (std::size_t i = 0; i < switch_count; ++i) write(writer, value.path[i]);
    writer.u32(value.lanes);
    writer.flag(value.serves);
    writer.flag(value.hosts_switch);
    writer.text(value.host, max_word_bytes);
    writer.text(value.rack, max_word_bytes);
    writer.text(value.uplink, max_word_bytes);
    writer.f64(value.host_bits_per_s);
    writer.f64(value.uplink_bits_per_s);
    const std::size_t socket_count = std::min<std::size_t>(value.sockets.size(), max_sockets);
    writer.u8(static_cast<std::uint8_t>(socket_count));
    for (std::size_t i = 0; i < socket_count; ++i) write(writer, value.sockets[i]);
}

void read(ByteReader& reader, NetworkFacts& value) {
    const std::size_t switch_count = reader.u8();
    reader.check(switch_count <= max_path_switches);
    for (std::size_t i = 0; i < switch_count && reader.ok(); ++i) read(reader, value.path.emplace_back());
    value.lanes = reader.u32();
    value.serves = reader.flag();
    value.hosts_switch = reader.flag();
    value.host = reader.text(max_word_bytes);
    value.rack = reader.text(max_word_bytes);
    value.uplink = reader.text(max_word_bytes);
    value.host_bits_per_s = reader.f64();
    reader.check(is_rate(value.host_bits_per_s));
    value.uplink_bits_per_s = reader.f64();
    reader.check(is_rate(value.uplink_bits_per_s));
    const std::size_t socket_count = reader.u8();
    reader.check(socket_count <= max_sockets);
    for (std::size_t i = 0; i < socket_count && reader.ok(); ++i) read(reader, value.sockets.emplace_back());
    reader.check(network_fits(value));
}

void write(ByteWriter& writer, const ServerFacts& value) { write(writer, value.address); }

void read(ByteReader& reader, ServerFacts& value) { read(reader, value.address); }

void write(ByteWriter& writer, const ReachedFacts& value) {
    const std::size_t server_count = std::min<std::size_t>(value.lanes.size(), max_ranks);
    writer.u16(static_cast<std::uint16_t>(server_count));
    for (std::size_t i = 0; i < server_count; ++i) writer.u32(value.lanes[i]);
    const std::size_t fault_count = std::min<std::size_t>(value.faults.size(), max_faults);
    writer.u8(static_cast<std::uint8_t>(fault_count));
    for (std::size_t i = 0; i < fault_count; ++i) write(writer, value.faults[i]);
    write(writer, value.leaf);
    writer.u32(value.leaf_aggregators);
    writer.u16(value.leaf_lanes);
}

void read(ByteReader& reader, ReachedFacts& value) {
    const std::size_t server_count = reader.u16();
    reader.check(server_count <= max_ranks);
    for (std::size_t i = 0; i < server_count && reader.ok(); ++i) value.lanes.push_back(reader.u32());
    const std::size_t fault_count = reader.u8();
    reader.check(fault_count <= max_faults);
    for (std::size_t i = 0; i < fault_count && reader.ok(); ++i) read(reader, value.faults.emplace_back());
    read(reader, value.leaf);
    value.leaf_aggregators = reader.u32();
    value.leaf_lanes = reader.u16();
}

void write(ByteWriter& writer, const JobPlan& value) {
    writer.u32(value.job);
    writer.u16(value.channels);
    writer.u16(value.lanes);
    writer.u32(value.window);
    writer.u32(value.aggregators);
    writer.u8(value.units);
    writer.u8(value.levels);
    writer.u8(value.layout);
}

void read(ByteReader& reader, JobPlan& value) {
    value.job = reader.u32();
    value.channels = reader.u16();
    reader.check(value.channels != 0);
    value.lanes = reader.u16();
    reader.check(value.lanes != 0 && value.lanes <= ATP_MAX_LANES);
    value.window = reader.u32();
    reader.check(value.window != 0);
    value.aggregators = reader.u32();
    value.units = reader.u8();
    reader.check(value.units != 0 && value.units <= ATP_BITMAP_BITS);
    value.levels = reader.u8();
    reader.check(value.levels != 0 && value.levels <= ATP_LEVELS);
    value.layout = reader.u8();
    reader.check(value.layout <= 3);
}

void write(ByteWriter& writer, const GaveUp& value) {
    writer.u16(value.rank);
    writer.u8(value.reason);
    writer.text(value.text, max_notice_bytes);
}

void read(ByteReader& reader, GaveUp& value) {
    value.rank = reader.u16();
    reader.check(value.rank < max_ranks);
    value.reason = reader.u8();
    reader.check(value.reason != 0 && value.reason <= most_reason);
    value.text = reader.text(max_notice_bytes);
}

}  // namespace

std::size_t encode(const RankFacts& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, StoreType::facts);
    write(writer, message);
    return writer.finish();
}

std::optional<RankFacts> decode_facts(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, StoreType::facts);
    std::optional<RankFacts> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const SharedFacts& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, StoreType::shared);
    write(writer, message);
    return writer.finish();
}

std::optional<SharedFacts> decode_shared(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, StoreType::shared);
    std::optional<SharedFacts> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const NetworkFacts& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, StoreType::network);
    write(writer, message);
    return writer.finish();
}

std::optional<NetworkFacts> decode_network(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, StoreType::network);
    std::optional<NetworkFacts> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const ServerFacts& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, StoreType::server);
    write(writer, message);
    return writer.finish();
}

std::optional<ServerFacts> decode_server(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, StoreType::server);
    std::optional<ServerFacts> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const ReachedFacts& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, StoreType::reached);
    write(writer, message);
    return writer.finish();
}

std::optional<ReachedFacts> decode_reached(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, StoreType::reached);
    std::optional<ReachedFacts> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const JobPlan& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, StoreType::plan);
    write(writer, message);
    return writer.finish();
}

std::optional<JobPlan> decode_plan(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, StoreType::plan);
    std::optional<JobPlan> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const GaveUp& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, StoreType::gave_up);
    write(writer, message);
    return writer.finish();
}

std::optional<GaveUp> decode_gave_up(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, StoreType::gave_up);
    std::optional<GaveUp> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

// End of the written part.

}  // namespace atp::wire
