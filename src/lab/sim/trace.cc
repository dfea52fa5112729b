// SPDX-License-Identifier: Apache-2.0
#include "sim/trace.h"

#include <fmt/format.h>

#include "wire/trace.h"

namespace atp::sim {

void Trace::packet(Time now, std::string_view where, std::string_view what, std::string_view description) {
    line_.clear();
    wire::append_trace_line(line_, now, where, what, description);
    fmt::print(file_, "{}", line_);
}

void Trace::note(Time now, std::string_view where, std::string_view what) { packet(now, where, what, {}); }

}  // namespace atp::sim
