// SPDX-License-Identifier: Apache-2.0
// Workers whose timer resends fragments instead of asking the server about them, as in the paper. A resend also takes a
// partial sum that only waits for a slow worker out of its switch, so the protocol asks first.
#pragma once

#include <cstddef>
#include <span>

namespace atp::policy {

// If the packet is a PROBE, turns it into the NACK with which a server asks for that fragment, and returns true. The
// host of the worker hands it back to the worker, and sends nothing. False for a fragment that has one sender: the
// worker may not be the one.
[[nodiscard]] bool turn_probe_into_nack(std::span<std::byte> packet);

}  // namespace atp::policy
