// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "wire/address.h"

namespace atp::control {

// Whom a switch counts resources for while it knows no better name: an IPv4 address, or the network of 64 bits of an
// IPv6 address, since one host may use all addresses of that.
struct HostKey {
    std::uint8_t family = 0;
    std::array<std::byte, 16> host{};

    [[nodiscard]] static HostKey of(const wire::Address& address);
    auto operator<=>(const HostKey&) const = default;
};

}  // namespace atp::control
