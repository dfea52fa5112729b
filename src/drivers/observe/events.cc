// SPDX-License-Identifier: Apache-2.0
#include "observe/events.h"

#include <algorithm>
#include <array>

namespace atp::observe {
namespace {

constexpr std::array<std::string_view, severity_count + 1> severities{"trace", "debug", "info", "warn", "error", "off"};

constexpr std::array table{
    EventRow{LogEvent::switch_started, "switch started", Severity::info},
    EventRow{LogEvent::switch_stopped, "switch stopped", Severity::info},
    EventRow{LogEvent::switch_failed, "switch failed", Severity::error},
    EventRow{LogEvent::feature_missing, "feature missing", Severity::info},
    EventRow{LogEvent::job_formed, "job formed", Severity::info},
    EventRow{LogEvent::job_ready, "job ready", Severity::info},
    EventRow{LogEvent::job_left, "job left", Severity::info},
    EventRow{LogEvent::job_failed, "job failed", Severity::warn},
    EventRow{LogEvent::job_refused, "job refused", Severity::warn},
    EventRow{LogEvent::rank_slow, "rank slow", Severity::warn},
    EventRow{LogEvent::memory_shared, "memory shared", Severity::info},
    EventRow{LogEvent::memory_apart, "memory apart", Severity::info},
    EventRow{LogEvent::precision_lowered, "precision lowered", Severity::warn},
    EventRow{LogEvent::floats_sent, "floats sent", Severity::warn},
    EventRow{LogEvent::layout_chosen, "layout chosen", Severity::info},
    EventRow{LogEvent::lanes_widened, "lanes widened", Severity::info},
    EventRow{LogEvent::member_joined, "member joined", Severity::debug},
    EventRow{LogEvent::member_left, "member left", Severity::debug},
    EventRow{LogEvent::member_lost, "member lost", Severity::warn},
    EventRow{LogEvent::leaf_joined, "leaf joined", Severity::info},
    EventRow{LogEvent::leaf_left, "leaf left", Severity::info},
    EventRow{LogEvent::leaf_lost, "leaf lost", Severity::warn},
    EventRow{LogEvent::parent_ready, "parent ready", Severity::info},
    EventRow{LogEvent::parent_lost, "parent lost", Severity::warn},
    EventRow{LogEvent::kernel_attached, "kernel attached", Severity::info},
    EventRow{LogEvent::kernel_detached, "kernel detached", Severity::info},
    EventRow{LogEvent::kernel_failed, "kernel failed", Severity::error},
    EventRow{LogEvent::trace_ended, "trace ended", Severity::info},
    EventRow{LogEvent::trace_failed, "trace failed", Severity::error},
    EventRow{LogEvent::log_suppressed, "log suppressed", Severity::warn},
};
static_assert(table.size() == static_cast<std::size_t>(LogEvent::log_suppressed) + 1);
static_assert(std::ranges::is_sorted(table, {}, &EventRow::event));

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
