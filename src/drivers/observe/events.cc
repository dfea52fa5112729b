// SPDX-License-Identifier: Apache-2.0
#include "observe/events.h"

#include <algorithm>
#include <array>

namespace atp::observe {
namespace {

// tools/write_events writes the severities from src/events.toml.
constexpr std::array<std::string_view, 6> severities{"trace", "debug", "info", "warn", "error", "off"};
// End of the written part.

// tools/write_events writes the events from src/events.toml.
// clang-format off
constexpr std::array table{
    EventRow{"switch started", Severity::info, {"address parent threads memory_bytes aggregators lanes jobs channels server_bytes ageing_ms hold_ms spin_us kernel tenants log_level log_format trace version", ""}},
    EventRow{"switch stopped", Severity::info, {"uptime_ms received_packets sent_packets completed joins_refused members_left members_expired members_closed", ""}},
    EventRow{"switch failed", Severity::error, {"reason", ""}},
    EventRow{"feature missing", Severity::info, {"address name reason", "name reason"}},
    EventRow{"job formed", Severity::info, {"job channel level address job_name? tenant? key? channels?", ""}},
    EventRow{"job ready", Severity::info, {"job channel members", "job rank world switch channels lanes window aggregators levels"}},
    EventRow{"job left", Severity::info, {"job channel", "job rank"}},
    EventRow{"job failed", Severity::warn, {"job channel address? reason", "job? rank reason"}},
    EventRow{"job refused", Severity::warn, {"job channel address tenant? key? reason", ""}},
    EventRow{"rank slow", Severity::warn, {"", "job rank reason"}},
    EventRow{"memory shared", Severity::info, {"", "rank ranks"}},
    EventRow{"shared memory unavailable", Severity::info, {"", "rank reason"}},
    EventRow{"values rounded to zero", Severity::warn, {"", "rank reason"}},
    EventRow{"float64 rounded", Severity::warn, {"", "job rank reason"}},
    EventRow{"float fallback", Severity::warn, {"", "job rank reason"}},
    EventRow{"layout chosen", Severity::info, {"", "rank reason"}},
    EventRow{"int32 fallback", Severity::info, {"", "job rank reason"}},
    EventRow{"member joined", Severity::debug, {"job channel rank address", ""}},
    EventRow{"member left", Severity::debug, {"job channel rank address", ""}},
    EventRow{"member lost", Severity::warn, {"job channel rank address reason", ""}},
    EventRow{"leaf joined", Severity::info, {"job channel unit address", ""}},
    EventRow{"leaf left", Severity::info, {"job channel unit address", ""}},
    EventRow{"leaf lost", Severity::warn, {"job channel unit address reason", ""}},
    EventRow{"parent ready", Severity::info, {"job? channel? address", ""}},
    EventRow{"parent lost", Severity::warn, {"job? channel? address reason", ""}},
    EventRow{"kernel attached", Severity::info, {"interface mode level", ""}},
    EventRow{"kernel detached", Severity::info, {"interface", ""}},
    EventRow{"kernel failed", Severity::error, {"reason", ""}},
    EventRow{"tenants changed", Severity::info, {"file reason", ""}},
    EventRow{"tenants kept", Severity::warn, {"file? reason", ""}},
    EventRow{"settings changed", Severity::info, {"file reason", ""}},
    EventRow{"settings kept", Severity::warn, {"file? reason", ""}},
    EventRow{"drain began", Severity::info, {"jobs", ""}},
    EventRow{"drain ended", Severity::info, {"reason", ""}},
    EventRow{"trace ended", Severity::info, {"file written dropped", "file written dropped"}},
    EventRow{"trace failed", Severity::error, {"file reason", "file reason"}},
    EventRow{"log suppressed", Severity::warn, {"event count", "event count"}},
};
// clang-format on
// End of the written part.

}  // namespace

std::string_view to_string(Severity severity) { return severities[static_cast<std::size_t>(severity)]; }

std::optional<Severity> severity_of(std::string_view name) {
    const auto* const found = std::ranges::find(severities, name);
    if (found == severities.end()) return std::nullopt;
    return static_cast<Severity>(found - severities.begin());
}

std::span<const EventRow> event_table() { return table; }

const EventRow& row_of(LogEvent event) { return table[static_cast<std::size_t>(event)]; }

}  // namespace atp::observe
