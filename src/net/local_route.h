// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/address.h"
#include "net/result.h"

namespace atp::net {

// The address of this host from which packets to `peer` leave, with port 0. Sends nothing.
[[nodiscard]] Result<Address> local_address_towards(const Address& peer);

}  // namespace atp::net
