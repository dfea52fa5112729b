// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace atp {

// A key that only this process knows.
using Secret = std::array<std::uint64_t, 2>;

// SipHash-2-4 (Aumasson and Bernstein): a message authentication code of 64 bits. Without the key, no host can compute
// the code of a message that the owner of the key has not computed.
[[nodiscard]] std::uint64_t siphash(const Secret& secret, std::span<const std::byte> message);

}  // namespace atp
