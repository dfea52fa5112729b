// SPDX-License-Identifier: Apache-2.0
// Packets of switchml.json: every implementation of SwitchML's format must decode them to the same fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "switchml/packet.h"

namespace atp::conformance {

struct SwitchMlVector {
    std::string description;
    std::vector<std::byte> bytes;
    switchml::DecodeError error = switchml::DecodeError::none;  // expected result of decode()
    switchml::Header header{};                                  // expected fields if `error` is none
    std::vector<std::uint32_t> lanes;                           // bit patterns; 16-bit lanes use the lower half
};

[[nodiscard]] std::vector<SwitchMlVector> switchml_vectors();

// The text of switchml.json: an array with one vector per line, so that a diff shows the changed vectors.
[[nodiscard]] std::string switchml_vectors_to_json(const std::vector<SwitchMlVector>& vectors);

}  // namespace atp::conformance
