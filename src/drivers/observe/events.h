// SPDX-License-Identifier: Apache-2.0
// The table of log events: their words, severities and keys. src/events.toml says what each of them means.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace atp::observe {

// tools/write_events writes the severities from src/events.toml.
// In the order of importance. As the level of a log: lines of this severity and of the ones after it are written.
enum class Severity : std::uint8_t {
    trace,  // unused so far
    debug,  // single workers
    info,   // the usual course of jobs
    warn,   // a job, a member or the parent has a problem; other jobs are not affected
    error,  // the process lacks a part of its function
    off,    // level only: writes nothing
};
inline constexpr std::string_view severity_forms = "trace, debug, info, warn, error or off";
// End of the written part.

[[nodiscard]] std::string_view to_string(Severity severity);
[[nodiscard]] std::optional<Severity> severity_of(std::string_view name);

// tools/write_events writes the events from src/events.toml.
enum class LogEvent : std::uint8_t {
    switch_started,
    switch_stopped,
    switch_failed,
    feature_missing,
    job_formed,
    job_ready,
    job_left,
    job_failed,
    job_refused,
    rank_slow,
    memory_shared,
    shared_memory_unavailable,
    values_rounded_to_zero,
    float64_rounded,
    float_fallback,
    layout_chosen,
    int32_fallback,
    member_joined,
    member_left,
    member_lost,
    leaf_joined,
    leaf_left,
    leaf_lost,
    parent_ready,
    parent_lost,
    kernel_attached,
    kernel_detached,
    kernel_failed,
    tenants_changed,
    tenants_kept,
    settings_changed,
    settings_kept,
    drain_began,
    drain_ended,
    trace_ended,
    trace_failed,
    log_suppressed,
};
// End of the written part.

struct EventRow {
    std::string_view words;  // "noun verb", as in the log
    Severity severity;
    // In their order, "job address? reason", in a line of a switch and in a line of a rank. A key with ? may be
    // missing. Empty: it never writes the event.
    std::array<std::string_view, 2> keys;
};

// In the order of LogEvent.
[[nodiscard]] std::span<const EventRow> event_table();
[[nodiscard]] const EventRow& row_of(LogEvent event);

}  // namespace atp::observe
