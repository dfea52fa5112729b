// SPDX-License-Identifier: Apache-2.0
// The table of log events: their words and severities. docs/reference/events.md shows the same table, which a test
// compares. The Python backend logs the events of ranks with the same words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace atp::observe {

// In the order of importance. As the level of a log: lines of this severity and of the ones after it are written.
enum class Severity : std::uint8_t {
    trace,  // unused so far
    debug,  // single workers
    info,   // the usual course of jobs
    warn,   // a job, a member of it or the parent has a problem; others are not affected
    error,  // the process lacks a part of its function
    off,    // level only: writes nothing
};
inline constexpr std::size_t severity_count = 5;  // without `off`

[[nodiscard]] std::string_view to_string(Severity severity);
[[nodiscard]] std::optional<Severity> severity_of(std::string_view name);
inline constexpr std::string_view severity_forms = "trace, debug, info, warn, error or off";

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
    memory_apart,
    precision_lowered,
    floats_sent,
    layout_chosen,
    lanes_widened,
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
    trace_ended,
    trace_failed,
    log_suppressed,
};

struct EventRow {
    LogEvent event;
    std::string_view words;  // "noun verb", as in the log
    Severity severity;
};

// In the order of LogEvent.
[[nodiscard]] std::span<const EventRow> event_table();
[[nodiscard]] const EventRow& row_of(LogEvent event);

}  // namespace atp::observe
