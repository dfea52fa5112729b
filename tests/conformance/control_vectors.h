// SPDX-License-Identifier: Apache-2.0
// Messages of control.json: every implementation that joins a tree of switches must decode them to the same fields.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "wire/control.h"

namespace atp::conformance {

struct ControlVector {
    std::string description;
    std::vector<std::byte> bytes;
    bool accepted = true;
    std::string fields;  // decoded fields as one JSON object; empty if the message is refused
};

[[nodiscard]] std::vector<ControlVector> control_vectors();
// Fields of a message as one JSON object; nullopt if wire/control.h refuses it.
[[nodiscard]] std::optional<std::string> control_fields(const std::vector<std::byte>& bytes);
[[nodiscard]] nlohmann::ordered_json to_json(const ControlVector& vector);

}  // namespace atp::conformance
