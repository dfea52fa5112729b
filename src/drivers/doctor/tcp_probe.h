// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "wire/address.h"

namespace atp::doctor {

// How long it takes to be let in by whoever listens at `peer`, over TCP. Says nothing to it. Waits until the deadline.
[[nodiscard]] Result<Duration> time_to_connect(const wire::Address& peer, Time deadline);

}  // namespace atp::doctor
