// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace atp::xdp {

// Whether an attached program, given by its kernel number `there`, uses a map of `program`. If so, this start or an
// earlier one attached it.
[[nodiscard]] bool shares_maps(std::uint32_t there, int program);

}  // namespace atp::xdp
