// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <variant>

#include "wire/control.h"

namespace atp::wire {

// What a member or a switch sends to build the tree.
using JoiningMessage = std::variant<Join, Joined, Refused, Leave, Retry>;

// As encode() of its type. A JOIN is padded, at least so that no answer is longer.
[[nodiscard]] inline std::size_t encode(const JoiningMessage& message, std::span<std::byte> bytes,
                                        std::size_t join_bytes = 0) {
    return std::visit(
        [bytes, join_bytes](const auto& each) {
            if constexpr (std::is_same_v<std::decay_t<decltype(each)>, Join>) {
                return encode(each, bytes, std::max(join_bytes, least_question_bytes));
            } else {
                return encode(each, bytes);
            }
        },
        message);
}

}  // namespace atp::wire
