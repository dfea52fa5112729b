// SPDX-License-Identifier: Apache-2.0
// Packets of switchml.json: every implementation of SwitchML's format must decode them to the same fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
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
[[nodiscard]] nlohmann::ordered_json to_json(const SwitchMlVector& vector);

}  // namespace atp::conformance
