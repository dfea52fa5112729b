// SPDX-License-Identifier: Apache-2.0
// Decodes arbitrary bytes as a SwitchML packet: decode() must not read past the bytes, and an accepted packet encodes
// to the same bytes.
#include <algorithm>
#include <array>
#include <cstddef>

#include "input.h"
#include "require.h"
#include "switchml/packet.h"

namespace atp::fuzz {

void run(Input& input) {
    Bytes bytes = input.rest();
    switchml::Packet packet;
    const bool sound = switchml::decode(bytes, packet) == switchml::DecodeError::none;
    require(!switchml::to_string(packet.header, packet.lane_count()).empty(), "every header has a text");
    if (!sound) return;
    require(packet.header.worker < switchml::max_workers, "the worker is a bit of the bitmap");
    require(packet.lanes.data() == bytes.data() + switchml::header_bytes, "the lanes follow the header");
    require(packet.lane_count() * packet.header.lane_bytes() + switchml::header_bytes == bytes.size(),
            "the lanes end at the end of the packet");
    require(packet.lane_count() > 0, "the packet has at least one lane");
    std::array<std::byte, switchml::header_bytes> again{};
    switchml::encode_header(packet.header, again);
    require(std::equal(again.begin(), again.end(), bytes.begin()), "encoding gives the bytes that were decoded");
}

}  // namespace atp::fuzz
