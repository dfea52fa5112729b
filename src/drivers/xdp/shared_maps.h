// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace atp::xdp {

// Whether a program that is attached somewhere, by the kernel's number of it, works on a map of `program`'s: then an
// earlier start of ours, or this one, has left it there.
[[nodiscard]] bool shares_maps(std::uint32_t there, int program);

}  // namespace atp::xdp
