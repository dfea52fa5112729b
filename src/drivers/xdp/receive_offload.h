// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace atp::xdp {

// GRO: the kernel merges packets that an interface receives. The program emits the packets of sums one by one. Without
// GRO, the kernel forwards and delivers each packet separately, and the receiver answers each packet separately.
//
// Turns GRO on if it is off, and returns true if it did so. An interface that does not support GRO stays as it is.
[[nodiscard]] bool merge_received(const std::string& interface);
void stop_merging_received(const std::string& interface);

}  // namespace atp::xdp
