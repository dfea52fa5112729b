// SPDX-License-Identifier: Apache-2.0
// Writes one line per event of a packet, suitable for grep.
//
//   12.034us s0>p0 sent GRADIENT job=1 token=... seq=17 ...
//   13.100us s0 completed ...
#pragma once

#include <cstdio>
#include <string_view>

#include "base/time.h"

namespace atp::sim {

class Trace {
  public:
    // Borrows the file, which the caller closes.
    explicit Trace(std::FILE* file) : file_(file) {}

    // An event of the packet at a node, or on the link between two nodes.
    void packet(Time now, std::string_view where, std::string_view what, std::string_view description);
    void note(Time now, std::string_view where, std::string_view what);

  private:
    std::FILE* file_;
};

[[nodiscard]] std::string_view event_name(unsigned atp_switch_event);

}  // namespace atp::sim
