// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of packets. decode() accepts any bytes. Every field of an accepted packet is in its range, so
// later code does not check it again. The caller counts a refused packet by its reason and drops it.
//
// The functions have no state and are safe in every thread. The packet path does not allocate. It is inline because
// each switch runs it for every packet; the functions for text are not inline.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "wire/bytes.h"
#include "wire/check.h"
#include "wire/format.h"

namespace atp::wire {

// enum atp_refusal as a C++ type.
// tools/write_wire writes the errors from src/machines/wire/wire.toml.
enum class DecodeError : std::uint8_t {
    none = ATP_REFUSED_NOT,
    truncated = ATP_REFUSED_TRUNCATED,
    version = ATP_REFUSED_VERSION,
    oversized = ATP_REFUSED_OVERSIZED,
    ragged = ATP_REFUSED_RAGGED,
    type = ATP_REFUSED_TYPE,
    flags = ATP_REFUSED_FLAGS,
    lanes = ATP_REFUSED_LANES,
    proof = ATP_REFUSED_PROOF,
    hop = ATP_REFUSED_HOP,
    window = ATP_REFUSED_WINDOW,
    token = ATP_REFUSED_TOKEN,
    set = ATP_REFUSED_SET,
    part = ATP_REFUSED_PART,
};
// End of the written part.
inline constexpr std::size_t decode_error_count = ATP_REFUSAL_COUNT;

[[nodiscard]] std::string_view to_string(DecodeError error);

// A decoded packet: a copy of the header, and the lanes in the receive buffer.
struct Packet {
    atp_header header{};
    std::span<std::byte> lanes;  // big-endian, ATP_LANE_BYTES each

    [[nodiscard]] std::size_t lane_count() const { return lanes.size() / ATP_LANE_BYTES; }
};

// On success `packet.lanes` points into `bytes`. After an error the content of `packet` must not be used.
[[nodiscard]] DecodeError decode(std::span<std::byte> bytes, Packet& packet);

// Writes the header to `bytes`, which holds at least ATP_HEADER_BYTES. It writes ATP_VERSION and ignores
// `header.version`.
void encode_header(const atp_header& header, std::span<std::byte> bytes);

// True: packets of this type go to the server; otherwise to workers and switches.
[[nodiscard]] constexpr bool goes_up(std::uint8_t type) {
    return type == ATP_TYPE_GRADIENT || type == ATP_TYPE_PROBE || type == ATP_TYPE_READY;
}

// One line with every field; an absent value reads 0 or none. Example:
// "GRADIENT job=650de528 token=0x5eed ch=0 seq=17 w=2 hop=0 win=8 scale=0 idx=5 arg=0 peer=all sending=1 part=0.0
// form=int32 int32x62 set=0x4/0xf,0x1/0x1 resend ecn".
[[nodiscard]] std::string to_string(const atp_header& header, std::size_t lanes);
// Names of the set flags, separated by spaces: "resend ecn". Unknown flags read "unknown".
[[nodiscard]] std::string flags_to_string(std::uint16_t flags);
[[nodiscard]] std::string_view flag_to_string(std::uint16_t flag);
[[nodiscard]] std::string_view type_to_string(std::uint8_t type);
[[nodiscard]] std::string_view dtype_to_string(std::uint8_t dtype);

namespace detail {

// tools/write_wire writes the loading of a header from src/machines/wire/wire.toml.
// Reads ATP_HEADER_BYTES bytes and checks no field.
[[nodiscard]] inline atp_header load_header(const std::byte* at) {
    return {
        .version = load_u8(at + ATP_OFFSET_VERSION),
        .type = load_u8(at + ATP_OFFSET_TYPE),
        .flags = load_u16(at + ATP_OFFSET_FLAGS),
        .hop = load_u8(at + ATP_OFFSET_HOP),
        .lanes = load_u8(at + ATP_OFFSET_LANES),
        .window_log2 = load_u8(at + ATP_OFFSET_WINDOW),
        .scale = load_u8(at + ATP_OFFSET_SCALE),
        .job = load_u32(at + ATP_OFFSET_JOB),
        .channel = load_u16(at + ATP_OFFSET_CHANNEL),
        .worker = load_u16(at + ATP_OFFSET_WORKER),
        .token = load_u64(at + ATP_OFFSET_TOKEN),
        .seq = load_u32(at + ATP_OFFSET_SEQ),
        .index = load_u32(at + ATP_OFFSET_INDEX),
        .argument = load_u32(at + ATP_OFFSET_ARGUMENT),
        .peer = load_u16(at + ATP_OFFSET_PEER),
        .sending = load_u8(at + ATP_OFFSET_SENDING),
        .part = load_u8(at + ATP_OFFSET_PART),
        .bitmap0 = load_u32(at + ATP_OFFSET_BITMAP0),
        .mask0 = load_u32(at + ATP_OFFSET_MASK0),
        .bitmap1 = load_u32(at + ATP_OFFSET_BITMAP1),
        .mask1 = load_u32(at + ATP_OFFSET_MASK1),
    };
}
// End of the written part.

}  // namespace detail

inline DecodeError decode(std::span<std::byte> bytes, Packet& packet) {
    if (bytes.size() < ATP_HEADER_BYTES) return DecodeError::truncated;
    const std::uint8_t refusal = atp_check_bytes(load_u8(bytes.data() + ATP_OFFSET_VERSION), bytes.size());
    if (refusal != ATP_REFUSED_NOT) return DecodeError{refusal};
    packet.header = detail::load_header(bytes.data());
    packet.lanes = bytes.subspan(ATP_HEADER_BYTES);
    const auto words = static_cast<std::uint32_t>(packet.lane_count());
    return DecodeError{atp_check_header(&packet.header, words)};
}

// tools/write_wire writes the encoding of a header from src/machines/wire/wire.toml.
inline void encode_header(const atp_header& header, std::span<std::byte> bytes) {
    assert(bytes.size() >= ATP_HEADER_BYTES);
    std::byte* const at = bytes.data();
    store_u8(at + ATP_OFFSET_VERSION, ATP_VERSION);
    store_u8(at + ATP_OFFSET_TYPE, header.type);
    store_u16(at + ATP_OFFSET_FLAGS, header.flags);
    store_u8(at + ATP_OFFSET_HOP, header.hop);
    store_u8(at + ATP_OFFSET_LANES, header.lanes);
    store_u8(at + ATP_OFFSET_WINDOW, header.window_log2);
    store_u8(at + ATP_OFFSET_SCALE, header.scale);
    store_u32(at + ATP_OFFSET_JOB, header.job);
    store_u16(at + ATP_OFFSET_CHANNEL, header.channel);
    store_u16(at + ATP_OFFSET_WORKER, header.worker);
    store_u64(at + ATP_OFFSET_TOKEN, header.token);
    store_u32(at + ATP_OFFSET_SEQ, header.seq);
    store_u32(at + ATP_OFFSET_INDEX, header.index);
    store_u32(at + ATP_OFFSET_ARGUMENT, header.argument);
    store_u16(at + ATP_OFFSET_PEER, header.peer);
    store_u8(at + ATP_OFFSET_SENDING, header.sending);
    store_u8(at + ATP_OFFSET_PART, header.part);
    store_u32(at + ATP_OFFSET_BITMAP0, header.bitmap0);
    store_u32(at + ATP_OFFSET_MASK0, header.mask0);
    store_u32(at + ATP_OFFSET_BITMAP1, header.bitmap1);
    store_u32(at + ATP_OFFSET_MASK1, header.mask1);
}
// End of the written part.

}  // namespace atp::wire
