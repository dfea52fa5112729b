// SPDX-License-Identifier: Apache-2.0
// The codes of JOIN, JOINED, REFUSED and LEAVE between hosts that have a key. They follow the fields of a message, in
// front of its padding, and the message names where. docs/spec/codes.md is normative; control/session_code.h
// computes them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "wire/join_messages.h"

namespace atp::wire {

using MessageCode = std::array<std::byte, 16>;
inline constexpr std::size_t longest_code_bytes = 4 + 4 + 2 + 63 + sizeof(MessageCode);  // JoinCode

// Of a JOIN: a switch in the path of its member may set it, so no code covers its value.
inline constexpr std::size_t int32_path_at = 122;

template <class Part>
struct Coded {
    Part part;
    std::span<const std::byte> covered{};  // what is in front of part.code
};

// Part: JoinCode, JoinedCode or PlainCode. Appends it to a message of `size` bytes, whose code is then its last bytes.
// Returns the new size; 0: it does not fit.
template <class Part>
[[nodiscard]] std::size_t append_code(const Part& part, std::span<std::byte> bytes, std::size_t size);
// nullopt: the message has none.
template <class Part>
[[nodiscard]] std::optional<Coded<Part>> code_of(std::span<const std::byte> bytes);

}  // namespace atp::wire
