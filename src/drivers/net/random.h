// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

#include "base/siphash.h"

namespace atp::net {

// Random bits of the kernel, which others cannot guess.
[[nodiscard]] inline std::uint64_t random_bits() {
    std::random_device chance;
    return std::uint64_t{chance()} << 32U | chance();
}

[[nodiscard]] inline Secret random_secret() { return {random_bits(), random_bits()}; }

}  // namespace atp::net
