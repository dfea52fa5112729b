// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/siphash.h"

namespace atp::net {

// Random bits of the kernel, which others cannot guess. std::random_device would read the processor's instruction, of
// which some models return constants. Ends the process if the kernel gives none: without secrets ATP protects nothing.
[[nodiscard]] std::uint64_t random_bits();

[[nodiscard]] inline Secret random_secret() { return {random_bits(), random_bits()}; }

}  // namespace atp::net
