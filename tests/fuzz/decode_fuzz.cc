// SPDX-License-Identifier: Apache-2.0
// Decodes arbitrary bytes as a packet: decode() must not read past the bytes. If an accepted packet is encoded again,
// the result must be the same bytes.
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "input.h"
#include "require.h"
#include "wire/ack_list.h"
#include "wire/packet.h"

namespace atp::fuzz {
namespace {

void require_understood(const wire::Packet& packet, std::span<const std::byte> bytes) {
    require(packet.lanes.data() == bytes.data() + ATP_HEADER_BYTES, "the lanes follow the header");
    require(packet.lanes.size() + ATP_HEADER_BYTES == bytes.size(), "the lanes end at the end of the packet");
    require(packet.lane_count() <= ATP_MAX_LANES, "the packet has at most ATP_MAX_LANES");

    std::array<std::byte, ATP_HEADER_BYTES> again{};
    wire::encode_header(packet.header, again);
    std::array<std::byte, ATP_HEADER_BYTES> expected{};
    std::memcpy(expected.data(), bytes.data(), expected.size());
    require(again == expected, "encoding gives the bytes that were decoded");
}

void require_in_range(const atp_header& header) {
    require(header.type >= ATP_TYPE_GRADIENT && header.type <= ATP_TYPE_LAST, "the type is known");
    require(header.hop <= ATP_LEVELS, "the hop is a level or the server");
    require(header.window_log2 <= ATP_WINDOW_LOG2_MAX, "window_log2 is at most ATP_WINDOW_LOG2_MAX");
    require(header.token != 0, "the token is not 0");
    require((header.bitmap0 & header.mask0) == header.bitmap0, "all members belong to the unit");
    require((header.bitmap1 & header.mask1) == header.bitmap1, "all units belong to the job");
    require(header.type != ATP_TYPE_GRADIENT || header.bitmap1 != 0, "a gradient names a unit");
}

// The bytes of a further ACK that mean nothing are sent as 0.
void require_same_list(const wire::Packet& packet) {
    wire::AckList list;
    for (std::size_t at = 0; at < wire::listed_acks(packet); ++at) {
        std::array<std::byte, ATP_HEADER_BYTES> ack{};
        wire::encode_header(wire::listed_ack(packet, at), ack);
        list.add(ack);
    }
    const std::span<const std::byte> again = list.packet().subspan(ATP_HEADER_BYTES);
    require(again.size() == packet.lanes.size(), "a list has as many ACKs as were read");
    for (std::size_t at = 0; at < again.size(); ++at) {
        if (at % wire::listed_ack_bytes < 14) require(again[at] == packet.lanes[at], "ACKs of a list give that list");
    }
}

}  // namespace

void run(Input& input) {
    Bytes bytes = input.rest();
    wire::Packet packet;
    if (wire::decode(bytes, packet) == wire::DecodeError::none) {
        require_understood(packet, bytes);
        require_in_range(packet.header);
        if (packet.header.type == ATP_TYPE_ACK_LIST) require_same_list(packet);
    }
    require(!wire::to_string(packet.header, packet.lane_count()).empty(), "every header has a text");
}

}  // namespace atp::fuzz
