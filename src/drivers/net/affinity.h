// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"

namespace atp::net {

// The cores that the calling thread may run on, ascending.
[[nodiscard]] Result<std::vector<unsigned>> allowed_cores();

// Keeps the calling thread on one core. Fails, and changes nothing, for a core that the thread may not use.
[[nodiscard]] Result<void> pin_this_thread(unsigned core);

}  // namespace atp::net
