// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/time.h"
#include "wire/address.h"

namespace atp::doctor {

// Routers that the answer of the switch at `peer` to a HELLO passed, by the TTL that is left of the usual 64, 128 or
// 255. nullopt: no answer within `longest_wait`.
[[nodiscard]] std::optional<unsigned> count_routers(const wire::Address& peer, Duration longest_wait);

}  // namespace atp::doctor
