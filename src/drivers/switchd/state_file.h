// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "base/siphash.h"

namespace atp::switchd {

// The key of a switch's tickets (control/ticket.h), which a file keeps over restarts. The file is one line, and only
// its owner may read it: who knows the key can forge tickets.
//
// Threads: any, but one process uses a file at a time. Failure: returns the reason; a file that exists is not changed.
[[nodiscard]] Result<Secret> ticket_key_in(const std::string& path);

}  // namespace atp::switchd
