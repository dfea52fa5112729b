// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace atp::net {

// The two ECN bits of the IP header (RFC 3168). ATP sends ECT(0): a switch that is congested then marks instead of
// dropping, and the mark arrives as CE.
enum class Ecn : std::uint8_t { not_capable = 0, capable_1 = 1, capable_0 = 2, congested = 3 };

inline constexpr unsigned ecn_mask = 3;

}  // namespace atp::net
