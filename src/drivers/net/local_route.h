// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "wire/address.h"

namespace atp::net {

// The source address of packets from this host to `peer`, with port 0. Sends no packet.
[[nodiscard]] Result<wire::Address> local_address_towards(const wire::Address& peer);

}  // namespace atp::net
