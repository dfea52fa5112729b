// SPDX-License-Identifier: Apache-2.0
// The clock behind protocol::Time wherever packets are real: CLOCK_MONOTONIC, which no clock setting moves.
#pragma once

#include <ctime>

#include "protocol/time.h"

namespace atp::net {

[[nodiscard]] inline protocol::Time now() {
    timespec at{};
    clock_gettime(CLOCK_MONOTONIC, &at);
    return protocol::Time(std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec));
}

}  // namespace atp::net
