// SPDX-License-Identifier: Apache-2.0
#include "check/ack_lists.h"

#include <algorithm>

#include "wire/bytes.h"

namespace atp::check {
namespace {

Bytes without_index(std::span<const std::byte> ack) {
    Bytes bytes(ack.begin(), ack.end());
    wire::store_u32(bytes.data() + ATP_OFFSET_INDEX, 0);
    return bytes;
}

}  // namespace

bool is_empty_ack(std::span<const std::byte> packet) {
    const std::uint8_t type = wire::load_u8(packet.data() + ATP_OFFSET_TYPE);
    return type == ATP_TYPE_ACK_LIST || (type == ATP_TYPE_ACK && packet.size() == ATP_HEADER_BYTES);
}

std::vector<Bytes> acks_of(std::span<const std::byte> packet) {
    constexpr std::size_t words = 16;
    Bytes first(packet.begin(), packet.begin() + ATP_HEADER_BYTES);
    wire::store_u8(first.data() + ATP_OFFSET_TYPE, ATP_TYPE_ACK);
    std::vector<Bytes> acks{first};
    for (std::size_t at = ATP_HEADER_BYTES; at + words <= packet.size(); at += words) {
        const std::byte* const from = packet.data() + at;
        std::byte* const ack = acks.emplace_back(first).data();
        wire::store_u32(ack + ATP_OFFSET_INDEX, 0);
        wire::store_u32(ack + ATP_OFFSET_SEQ, wire::load_u32(from));
        wire::store_u32(ack + ATP_OFFSET_ARGUMENT, wire::load_u32(from + 4));
        wire::store_u16(ack + ATP_OFFSET_FLAGS, wire::load_u16(from + 8));
        wire::store_u16(ack + ATP_OFFSET_PEER, wire::load_u16(from + 10));
        wire::store_u8(ack + ATP_OFFSET_SCALE, wire::load_u8(from + 12));
        wire::store_u8(ack + ATP_OFFSET_SENDING, wire::load_u8(from + 13));
    }
    return acks;
}

void OwedAcks::take(std::span<const std::byte> ack) { owed_.push_back(without_index(ack)); }

std::string_view OwedAcks::leave(std::span<const std::byte> packet) {
    for (const Bytes& ack : acks_of(packet)) {
        const auto found = std::ranges::find(owed_, without_index(ack));
        if (found == owed_.end()) return "an ACK leaves a switch that did not take it";
        owed_.erase(found);
    }
    return {};
}

}  // namespace atp::check
