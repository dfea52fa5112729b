// SPDX-License-Identifier: Apache-2.0
// Sizes, rates, times and shares, as every command reads them.
#pragma once

#include "units/units.h"

namespace atp::cli {

using units::duration_forms;
using units::duration_text;
using units::parse_duration;
using units::parse_percent;
using units::parse_rate;
using units::parse_size;
using units::parse_wait;
using units::percent_forms;
using units::rate_forms;
using units::size_forms;
using units::wait_forms;

}  // namespace atp::cli
