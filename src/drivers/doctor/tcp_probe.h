// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "wire/address.h"

namespace atp::doctor {

// Time to connect to `peer` over TCP, until the deadline at most. Sends no data.
[[nodiscard]] Result<Duration> time_to_connect(const wire::Address& peer, Time deadline);

}  // namespace atp::doctor
