// SPDX-License-Identifier: Apache-2.0
// Sizes, rates, times and shares, as every command reads them.
#pragma once

#include "base/units.h"

namespace atp::apps {}  // namespace atp::apps
