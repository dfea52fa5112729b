// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <variant>

#include "wire/control.h"

namespace atp::wire {

// What a member or a switch sends to build the tree.
using JoiningMessage = std::variant<Join, Joined, Refused, Leave, Retry>;

// JOIN and JOINED are padded to `padded_bytes`, a JOIN at least so that no answer is longer.
[[nodiscard]] inline std::size_t least_bytes_of(const JoiningMessage& message, std::size_t padded_bytes) {
    if (std::holds_alternative<Join>(message)) return std::max(padded_bytes, least_question_bytes);
    return std::holds_alternative<Joined>(message) ? padded_bytes : 0;
}

// As encode() of its type.
[[nodiscard]] inline std::size_t encode(const JoiningMessage& message, std::span<std::byte> bytes,
                                        std::size_t padded_bytes = 0) {
    const std::size_t least = least_bytes_of(message, padded_bytes);
    return std::visit([&](const auto& each) { return encode(each, bytes, least); }, message);
}

}  // namespace atp::wire
