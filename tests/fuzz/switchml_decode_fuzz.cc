// SPDX-License-Identifier: Apache-2.0
// Decodes arbitrary bytes as a SwitchML packet: decode() must not read past the bytes, and an accepted packet encodes
// to the same bytes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "require.h"
#include "switchml/packet.h"

using atp::fuzz::require;
namespace format = atp::switchml;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::byte> bytes(size);  // exactly the size of the input, so that a sanitizer detects a read past it
    if (size > 0) std::memcpy(bytes.data(), data, size);
    format::Packet packet;
    const bool sound = format::decode(bytes, packet) == format::DecodeError::none;
    require(!format::to_string(packet.header, packet.lane_count()).empty(), "every header has a text");
    if (!sound) return 0;
    require(packet.header.worker < format::max_workers, "the worker is a bit of the bitmap");
    require(packet.lanes.data() == bytes.data() + format::header_bytes, "the lanes follow the header");
    require(packet.lane_count() * packet.header.lane_bytes() + format::header_bytes == size,
            "the lanes end at the end of the packet");
    require(packet.lane_count() > 0, "the packet has at least one lane");
    std::array<std::byte, format::header_bytes> again{};
    format::encode_header(packet.header, again);
    require(std::equal(again.begin(), again.end(), bytes.begin()), "encoding gives the bytes that were decoded");
    return 0;
}
