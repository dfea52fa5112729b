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

// As encode() of its type. JOIN and JOINED are padded to `padded_bytes`, a JOIN at least so that no answer is longer.
[[nodiscard]] inline std::size_t encode(const JoiningMessage& message, std::span<std::byte> bytes,
                                        std::size_t padded_bytes = 0) {
    return std::visit(
        [bytes, padded_bytes](const auto& each) {
            using Message = std::decay_t<decltype(each)>;
            if constexpr (std::is_same_v<Message, Join>) {
                return encode(each, bytes, std::max(padded_bytes, least_question_bytes));
            } else if constexpr (std::is_same_v<Message, Joined>) {
                return encode(each, bytes, padded_bytes);
            } else {
                return encode(each, bytes);
            }
        },
        message);
}

}  // namespace atp::wire
