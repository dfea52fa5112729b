// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "wire/address.h"

namespace atp::client {

enum class ProbeOutcome : std::uint8_t { arrived, lost, too_long };
// Sends one packet of `bytes` to the peer and waits for the answer, up to a deadline of its own.
using Probe = std::function<Result<ProbeOutcome>(std::uint32_t bytes)>;

// The longest UDP payload that reaches `peer`, in bytes: reads the MTU of the route, then searches with `probe`. The
// call waits for all probes: use it for setup and diagnosis only. Fails if there is no route or if `probe` fails, and
// with timed_out if no probe arrives.
[[nodiscard]] Result<std::uint32_t> discover_path_payload(const wire::Address& peer, const Probe& probe);

}  // namespace atp::client
