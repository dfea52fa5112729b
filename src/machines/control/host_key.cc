// SPDX-License-Identifier: Apache-2.0
#include "control/host_key.h"

#include <algorithm>

#include "control/branch.h"

namespace atp::control {

HostKey HostKey::of(const wire::Address& address) {
    constexpr std::ptrdiff_t network_bytes = 8;
    const wire::Endpoint endpoint = endpoint_of(address);
    HostKey key{.family = endpoint.family};
    const bool network = address.family() == wire::Family::ipv6;
    std::ranges::copy_n(endpoint.host.begin(), network ? network_bytes : std::ssize(endpoint.host), key.host.begin());
    return key;
}

}  // namespace atp::control
