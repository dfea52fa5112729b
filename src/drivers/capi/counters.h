// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atp/atp.h>

#include <cstddef>

#include "comm/rank_counters.h"

namespace atp::capi {

// A program may be older or newer than the library: writes the counters that both know, and 0 for the others.
void write_counters(const comm::RankCounters& counted, atp_counters* to, std::size_t struct_size);

}  // namespace atp::capi
