// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace atp::xdp {

// GRO: the kernel merges packets that an interface receives. The program passes each packet of a sum by itself. Without
// GRO, the kernel forwards and delivers each one separately, and the receiver answers each one separately.
//
// Turns GRO on if it is off; true if it did. An interface that does not support GRO stays as it is.
[[nodiscard]] bool merge_received(const std::string& interface);
void stop_merging_received(const std::string& interface);

}  // namespace atp::xdp
