// SPDX-License-Identifier: Apache-2.0
// Rows of code.json: messages of members with a key and of switches with tenants, with their codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/session_code.h"

namespace atp::conformance {

struct CodeVector {
    std::string description;
    std::string name;  // of the switch whose key it is
    std::uint64_t boot = 0;
    control::Direction direction = control::Direction::up;
    bool right = true;
    std::vector<std::byte> bytes{};
};

// The tenant's key is the bytes 0 to 31.
[[nodiscard]] bool has_right_code(std::span<const std::byte> message, const std::string& name, std::uint64_t boot,
                                  control::Direction direction);

[[nodiscard]] std::vector<CodeVector> code_vectors();
[[nodiscard]] nlohmann::ordered_json to_json(const CodeVector& vector);

}  // namespace atp::conformance
