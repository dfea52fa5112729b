// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "wire/address.h"

namespace atp::net {

// The address of this host from which packets to `peer` leave, with port 0. Sends nothing.
[[nodiscard]] Result<wire::Address> local_address_towards(const wire::Address& peer);

}  // namespace atp::net
