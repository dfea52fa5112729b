// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "wire/address.h"

namespace atp::net {

// The MTU of the interface that has this address; for "any" the largest of those that are up, the loopback only where
// there is no other. Fails with unreachable where no interface has it.
[[nodiscard]] Result<std::uint32_t> interface_mtu(const wire::Address& local);

}  // namespace atp::net
