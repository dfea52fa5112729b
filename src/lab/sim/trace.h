// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/time.h"
#include "protocol/switch_event.h"

namespace atp::sim {

// Writes the events of packets to a file, in the format of wire/trace.h with virtual time.
class Trace {
  public:
    // Borrows the file, which the caller closes.
    explicit Trace(std::FILE* file) : file_(file) {}

    // An event of the packet at a node, or on the link between two nodes.
    void packet(Time now, std::string_view where, std::string_view what, std::string_view description);
    void note(Time now, std::string_view where, std::string_view what);

  private:
    std::FILE* file_;
    std::string line_;
};

using protocol::event_name;
using protocol::trace_event;

}  // namespace atp::sim
