// SPDX-License-Identifier: Apache-2.0
// Names to addresses.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "wire/address.h"

namespace atp::net {

// Every address of "host:port" or "[host]:port", in the resolver's order of preference, without repetitions; of
// `family` alone where one is given. Never empty on success.
//
// A numeric host is answered at once, without a look at the network. A name waits for the system's resolver, for as
// long as that is configured to take: call it while setting up, never from an event loop. From any thread.
[[nodiscard]] Result<std::vector<wire::Address>> resolve(std::string_view text,
                                                         wire::Family family = wire::Family::none);

}  // namespace atp::net
