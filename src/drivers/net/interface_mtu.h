// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "wire/address.h"

namespace atp::net {

// The MTU of the interface with this address, in bytes. For the "any" address: the largest MTU of the interfaces that
// are up; the loopback counts only if there is no other. Fails with unreachable if no interface has the address.
[[nodiscard]] Result<std::uint32_t> interface_mtu(const wire::Address& local);
// The name of the interface with this address; empty: none is known.
[[nodiscard]] std::string interface_name(const wire::Address& local);

}  // namespace atp::net
