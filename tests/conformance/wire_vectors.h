// SPDX-License-Identifier: Apache-2.0
// The packets of wire.json: what every implementation of the format, in whatever language, must read alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/packet.h"

namespace atp::conformance {

struct WireVector {
    std::string description;
    std::vector<std::byte> bytes;
    wire::DecodeError error = wire::DecodeError::none;  // what a decoder answers
    atp_header header{};                                // where there is no error: what it reads
    std::vector<std::uint32_t> lanes;
};

[[nodiscard]] std::vector<WireVector> wire_vectors();

// The text of wire.json: an array with one vector a line, so that a change shows as the lines that changed.
[[nodiscard]] std::string wire_vectors_to_json(const std::vector<WireVector>& vectors);

}  // namespace atp::conformance
