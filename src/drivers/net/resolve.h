// SPDX-License-Identifier: Apache-2.0
// Converts names to addresses.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/address.h"

namespace atp::net {

// The addresses of "host:port" or "[host]:port", in the resolver's order and without repetitions. If `family` is not
// none, only addresses of that family. Never empty on success.
//
// A numeric host needs no resolver. For a name, the call waits as long as the system's resolver is configured to wait:
// call it during setup, never from an event loop. Threads: any.
[[nodiscard]] Result<std::vector<wire::Address>> resolve(std::string_view text,
                                                         wire::Family family = wire::Family::none);

}  // namespace atp::net
