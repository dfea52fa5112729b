// SPDX-License-Identifier: Apache-2.0
#include "switchml/packet.h"

#include <array>
#include <cassert>

namespace atp::switchml {
namespace {

constexpr std::array<std::string_view, decode_error_count> error_names = {"none",  "truncated", "format", "oversized",
                                                                          "flags", "ragged",    "worker"};

}  // namespace

std::string_view to_string(DecodeError error) {
    const auto at = static_cast<std::size_t>(error);
    return at < error_names.size() ? error_names[at] : "unknown";
}

DecodeError decode(std::span<std::byte> bytes, Packet& packet) {
    if (bytes.size() < header_bytes) return DecodeError::truncated;
    const std::byte* const at = bytes.data();
    if (wire::load_u8(at + offset_format) != format_byte) return DecodeError::format;
    packet.lanes = bytes.subspan(header_bytes);
    if (packet.lanes.size() > max_lane_bytes) return DecodeError::oversized;
    packet.header = {.flags = wire::load_u8(at + offset_flags),
                     .job = wire::load_u8(at + offset_job),
                     .worker = wire::load_u8(at + offset_worker),
                     .slot = wire::load_u16(at + offset_slot),
                     .offset = wire::load_u32(at + offset_offset)};
    if ((packet.header.flags & ~all_flags) != 0) return DecodeError::flags;
    if (packet.lanes.empty() || packet.lanes.size() % packet.header.lane_bytes() != 0) return DecodeError::ragged;
    if (packet.header.worker >= max_workers) return DecodeError::worker;
    return DecodeError::none;
}

void encode_header(const Header& header, std::span<std::byte> bytes) {
    assert(bytes.size() >= header_bytes);
    std::byte* const at = bytes.data();
    wire::store_u8(at + offset_format, format_byte);
    wire::store_u8(at + offset_flags, header.flags);
    wire::store_u8(at + offset_job, header.job);
    wire::store_u8(at + offset_worker, header.worker);
    wire::store_u16(at + offset_slot, header.slot);
    wire::store_u32(at + offset_offset, header.offset);
}

std::string to_string(const Header& header, std::size_t lanes) {
    std::string text = header.result() ? "RESULT" : "UPDATE";
    text += " job=" + std::to_string(header.job) + " w=" + std::to_string(header.worker);
    text += " slot=" + std::to_string(header.slot) + " ver=" + std::to_string(header.version());
    text += " off=" + std::to_string(header.offset);
    text += (header.halves() ? " float16x" : " int32x") + std::to_string(lanes);
    if (header.overflowed()) text += " overflow";
    return text;
}

}  // namespace atp::switchml
