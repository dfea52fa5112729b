// SPDX-License-Identifier: Apache-2.0
#include "wire/query_messages.h"

#include <algorithm>

#include "wire/control.h"

namespace atp::wire {
namespace {

bool report_fits(const Report& report) { return report.part < report.parts; }

}  // namespace

// tools/write_wire writes the fields from src/machines/wire/wire.toml.
namespace {

constexpr std::size_t longest_report_bytes = 1'046;

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

void write(ByteWriter& writer, const Hello& value) { writer.u64(value.nonce); }

void read(ByteReader& reader, Hello& value) { value.nonce = reader.u64(); }

void write(ByteWriter& writer, const Welcome& value) {
    writer.u64(value.nonce);
    writer.u32(value.received_bytes);
    const std::size_t switch_count = std::min<std::size_t>(value.path.size(), max_path_switches);
    writer.u8(static_cast<std::uint8_t>(switch_count));
    for (std::size_t i = 0; i < switch_count; ++i) write(writer, value.path[i]);
    writer.text(value.software, max_software_bytes);
}

void read(ByteReader& reader, Welcome& value) {
    value.nonce = reader.u64();
    value.received_bytes = reader.u32();
    const std::size_t switch_count = reader.u8();
    reader.check(switch_count >= 1 && switch_count <= max_path_switches);
    for (std::size_t i = 0; i < switch_count && reader.ok(); ++i) read(reader, value.path.emplace_back());
    value.software = reader.text(max_software_bytes);
}

void write(ByteWriter& writer, const Stats& value) {
    writer.u64(value.nonce);
    writer.u32(value.snapshot);
    writer.u16(value.part);
}

void read(ByteReader& reader, Stats& value) {
    value.nonce = reader.u64();
    value.snapshot = reader.u32();
    value.part = reader.u16();
}

void write(ByteWriter& writer, const Report& value) {
    writer.u64(value.nonce);
    writer.u32(value.snapshot);
    writer.u16(value.part);
    writer.u16(value.parts);
    writer.text(value.text, report_part_bytes);
}

void read(ByteReader& reader, Report& value) {
    value.nonce = reader.u64();
    value.snapshot = reader.u32();
    value.part = reader.u16();
    value.parts = reader.u16();
    value.text = reader.text(report_part_bytes);
    reader.check(report_fits(value));
}

}  // namespace

std::size_t encode(const Hello& message, std::span<std::byte> bytes, std::size_t padded_bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, ControlType::hello);
    write(writer, message);
    return writer.finish(padded_bytes);
}

std::optional<Hello> decode_hello(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, ControlType::hello);
    std::optional<Hello> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const Welcome& message, std::span<std::byte> bytes, std::size_t padded_bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, ControlType::welcome);
    write(writer, message);
    return writer.finish(padded_bytes);
}

std::optional<Welcome> decode_welcome(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, ControlType::welcome);
    std::optional<Welcome> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const Stats& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, ControlType::stats);
    write(writer, message);
    return writer.finish(longest_report_bytes);
}

std::optional<Stats> decode_stats(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, ControlType::stats);
    std::optional<Stats> message(std::in_place);
    read(reader, *message);
    reader.check(bytes.size() >= longest_report_bytes);
    if (!reader.ok()) message.reset();
    return message;
}

std::size_t encode(const Report& message, std::span<std::byte> bytes) {
    ByteWriter writer(bytes);
    write_prefix(writer, ControlType::report);
    write(writer, message);
    return writer.finish();
}

std::optional<Report> decode_report(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_prefix(reader, ControlType::report);
    std::optional<Report> message(std::in_place);
    read(reader, *message);
    if (!reader.ok()) message.reset();
    return message;
}

// End of the written part.

}  // namespace atp::wire
