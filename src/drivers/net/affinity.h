// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"

namespace atp::net {

// The cores on which the calling thread may run, in ascending order.
[[nodiscard]] Result<std::vector<unsigned>> allowed_cores();

// Restricts the calling thread to one core. If the thread may not use that core, fails and changes nothing.
[[nodiscard]] Result<void> pin_this_thread(unsigned core);

}  // namespace atp::net
