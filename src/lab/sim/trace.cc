// SPDX-License-Identifier: Apache-2.0
#include "sim/trace.h"

#include <fmt/format.h>

#include <array>

#include "protocol/decide.h"

namespace atp::sim {
namespace {}  // namespace

void Trace::packet(Time now, std::string_view where, std::string_view what, std::string_view description) {
    fmt::print(file_, "{:.3f}us {} {} {}\n", to_microseconds(now.time_since_epoch()), where, what, description);
}

void Trace::note(Time now, std::string_view where, std::string_view what) {
    fmt::print(file_, "{:.3f}us {} {}\n", to_microseconds(now.time_since_epoch()), where, what);
}

std::string_view event_name(unsigned event) {
    static constexpr std::array<std::string_view, ATP_EVENT_COUNT> names{
        "passed",     "claimed",    "added",   "completed", "single",  "duplicate", "reemitted",
        "collided",   "bypassed",   "late",    "resent",    "fetched", "released",  "expired",
        "taken_over", "superseded", "flushed", "closed",    "misfit"};
    static_assert(ATP_EVENT_MISFIT == ATP_EVENT_COUNT - 1, "a new event needs a name, in the order of decide.h");
    return event < names.size() ? names[event] : "unknown";
}

}  // namespace atp::sim
