// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace atp::xdp {

// True if the attached program with the kernel number `there` uses a map of `program`. If so, this start or an earlier
// start attached it.
[[nodiscard]] bool shares_maps(std::uint32_t there, int program);

}  // namespace atp::xdp
