// SPDX-License-Identifier: Apache-2.0
// The live page, src/drivers/metrics/page.html.
#pragma once

#include <string_view>

namespace atp::metrics {

extern const std::string_view page;

}  // namespace atp::metrics
