// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "wire/address.h"

namespace atp::client {

enum class ProbeOutcome : std::uint8_t { arrived, lost, too_long };
// Sends one packet of so many bytes to the peer and waits, with a deadline of its own, for the answer.
using Probe = std::function<Result<ProbeOutcome>(std::uint32_t bytes)>;

// Asks the route, then confirms with `probe`: the longest payload that reaches `peer`. Waits as long as the probes do;
// for set-up and diagnosis. Fails where there is no route, where `probe` fails, or with timed_out where nothing
// arrives.
[[nodiscard]] Result<std::uint32_t> discover_path_payload(const wire::Address& peer, const Probe& probe);

}  // namespace atp::client
