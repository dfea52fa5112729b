// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "wire/address.h"

namespace atp::net {

// The MTU of the route to `peer` that this host knows, in bytes: that of the interface, or less after a recent ICMP
// message. Sends no packet and does not wait. A later link may carry less: use PathMtuSearch.
[[nodiscard]] Result<std::uint32_t> route_mtu(const wire::Address& peer);

}  // namespace atp::net
