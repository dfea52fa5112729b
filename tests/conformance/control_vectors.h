// SPDX-License-Identifier: Apache-2.0
// The messages of control.json: what every implementation that joins a tree of switches must read alike.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "wire/control.h"

namespace atp::conformance {

struct ControlVector {
    std::string description;
    std::vector<std::byte> bytes;
    bool accepted = true;
    std::string fields;  // where it is accepted: what a reader reads, as one JSON object
};

[[nodiscard]] std::vector<ControlVector> control_vectors();
// What a message of these bytes says, as one JSON object; nothing where it is refused. Reads with wire/control.h.
[[nodiscard]] std::optional<std::string> control_fields(const std::vector<std::byte>& bytes);

// The text of control.json: an array with one vector a line, so that a change shows as the lines that changed.
[[nodiscard]] std::string control_vectors_to_json(const std::vector<ControlVector>& vectors);

}  // namespace atp::conformance
