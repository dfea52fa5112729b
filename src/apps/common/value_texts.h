// SPDX-License-Identifier: Apache-2.0
// Sizes, rates, times and shares, in the format that every command reads.
#pragma once

#include "base/units.h"

namespace atp::apps {}  // namespace atp::apps
