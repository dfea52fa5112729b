// SPDX-License-Identifier: Apache-2.0
// Packets of wire.json: every implementation of the format in any language must decode them to the same fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "wire/packet.h"

namespace atp::conformance {

struct WireVector {
    std::string description;
    std::vector<std::byte> bytes;
    wire::DecodeError error = wire::DecodeError::none;  // expected result of decode()
    atp_header header{};                                // expected fields if `error` is none
    std::vector<std::uint32_t> lanes;
};

[[nodiscard]] std::vector<WireVector> wire_vectors();
// The vectors that are inputs of a fuzzer: without the table of all values of `lanes`.
[[nodiscard]] std::vector<WireVector> fuzzer_vectors();
[[nodiscard]] nlohmann::ordered_json to_json(const WireVector& vector);

}  // namespace atp::conformance
