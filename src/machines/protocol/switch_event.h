// SPDX-License-Identifier: Apache-2.0
// Names of the outcomes that a switch counts, for counters and traces.
#pragma once

#include <array>
#include <string_view>

#include "protocol/decide.h"

namespace atp::protocol {

// `event`: enum atp_switch_event.
[[nodiscard]] constexpr std::string_view event_name(unsigned event) {
    constexpr std::array<std::string_view, ATP_EVENT_COUNT> names{
        "passed",     "claimed",    "added",   "completed", "single",  "duplicate", "reemitted",
        "collided",   "bypassed",   "late",    "resent",    "fetched", "released",  "expired",
        "taken_over", "superseded", "flushed", "closed",    "misfit"};
    static_assert(ATP_EVENT_MISFIT == ATP_EVENT_COUNT - 1, "a new event needs a name, in the order of decide.h");
    return event < names.size() ? names[event] : "unknown";
}

// The word of a trace. A packet that is dropped without an event is of no job here, does not decode, or is a FLUSH
// that this switch cannot answer.
[[nodiscard]] constexpr std::string_view trace_event(unsigned event, bool drops) {
    return drops && event == ATP_EVENT_PASSED ? "dropped" : event_name(event);
}

}  // namespace atp::protocol
