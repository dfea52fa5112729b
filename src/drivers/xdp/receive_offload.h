// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace atp::xdp {

// Whether the kernel merges what an interface receives before it looks closer (GRO). Behind the program every packet
// of a sum is one of its own, and without merging each is carried, delivered and answered for itself.
//
// Turns it on where it is off; true if it did. An interface that cannot merge stays as it is.
[[nodiscard]] bool merge_received(const std::string& interface);
void stop_merging_received(const std::string& interface);

}  // namespace atp::xdp
