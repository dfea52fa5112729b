// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace atp::xdp {

// Rate of the link behind an interface in bit/s, as its driver reports it now; nullopt: it has no link, or the driver
// does not know. Software such as a veth or a tap has no link, and its driver reports some constant rate, which is not
// returned.
[[nodiscard]] std::optional<std::uint64_t> link_rate_of(const std::string& interface);

}  // namespace atp::xdp
