// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "wire/address.h"

namespace atp::net {

// The MTU of the route to `peer` as this host knows it: of the interface, or less where ICMP said so lately. Sends
// nothing, does not wait. A tunnel or a link further away may still carry less: PathMtuSearch finds out.
[[nodiscard]] Result<std::uint32_t> route_mtu(const wire::Address& peer);

}  // namespace atp::net
