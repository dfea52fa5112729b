// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/address.h"
#include "net/result.h"
#include "protocol/time.h"

namespace atp::doctor {

// How long it takes to be let in by whoever listens at `peer`, over TCP. Says nothing to it. Waits until the deadline.
[[nodiscard]] net::Result<protocol::Duration> time_to_connect(const net::Address& peer, protocol::Time deadline);

}  // namespace atp::doctor
