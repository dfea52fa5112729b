// SPDX-License-Identifier: Apache-2.0
// The packets of switchml.json: what every implementation of SwitchML's format must read alike.
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
    switchml::DecodeError error = switchml::DecodeError::none;  // what a decoder answers
    switchml::Header header{};                                  // where there is no error: what it reads
    std::vector<std::uint32_t> lanes;                           // as bits, whatever their width
};

[[nodiscard]] std::vector<SwitchMlVector> switchml_vectors();

// The text of switchml.json: an array with one vector a line, so that a change shows as the lines that changed.
[[nodiscard]] std::string switchml_vectors_to_json(const std::vector<SwitchMlVector>& vectors);

}  // namespace atp::conformance
