// SPDX-License-Identifier: Apache-2.0
#include "check/breaks_table.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "control/breaks.h"
#include "endpoint/breaks.h"
#include "protocol/breaks.h"

namespace atp::check {
namespace {

// Faults that star2 (two workers, one fragment at a time) cannot detect, each with a configuration that detects it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 79> shown_by = {{
    {"resend_claims", "star2-shared"},
    {"complete_early", "star3"},
    {"ignore_token", "incarnations2"},
    {"collision_not_bypass", "rack-direct-shared"},
    {"flush_keeps_aggregator", "star2-shared"},
    {"supersede_too_early", "star2-shared"},
    {"ecn_lost_in_switch", "marked"},
    {"mark_for_one", "marks"},
    {"mark_lost_in_repeat", "marked"},
    {"mark_lost_in_flush", "marked-bypass"},
    {"halves_each_mark", "marked-newer"},
    {"never_grows_again", "marks"},
    {"once_though_asked", "star2-path"},
    {"overflow_not_sticky", "overflow"},
    {"merge_overlapping", "star3-shared"},
    {"replace_smaller", "star3"},
    {"trust_overflowed_lanes", "overflow"},
    {"mix_modes", "float"},
    {"flush_forgets_plain", "plain"},
    {"mix_purposes", "mismatch"},
    {"window_unbounded", "star2-three"},
    {"accept_any_ack", "incarnation"},
    {"index_beyond_slice", "slices-jobs"},
    {"change_slice_at_once", "slices"},
    {"recall_evicts", "slices"},
    {"lost_is_included", "star2-newer"},
    {"lost_waits", "star2-newer"},
    {"overtaken_unasked", "star2-newer"},
    {"index_learned_again", "star2-indices"},
    {"index_for_sharers", "star2-indices"},
    {"version_bit_alone", "switchml2"},
    {"add_rank_twice", "float-ranks"},
    {"include_member_early", "float-ranks"},
    {"half_wide_copy", "int16-float"},
    {"half_wide_result", "int16-overflow"},
    {"owner_takes_empty_ack", "scatter2"},
    {"ready_before_scan", "scatter-home"},
    {"complete_without_ready", "gather2-one"},
    {"list_past_a_switch", "lists-racks"},
    {"list_of_held_sums", "lists-path"},
    {"list_mixes_workers", "lists-mixed"},
    {"list_has_one_index", "lists3"},
    {"list_stops_at_stale", "lists3"},
    {"free_before_harvest", "pipeline2"},
    {"harvest_unchecked", "pipeline2"},
    {"claim_unchecked", "pipeline-jobs"},
    {"pass_decides_again", "pipeline2"},
    {"add_unclaimed", "host2-ranges"},
    {"add_anything", "host2-mismatch"},
    {"open_early", "host2"},
    {"complete_early_on_host", "host2-ranges"},
    {"store_early", "host2"},
    {"load_early", "host2"},
    {"send_early", "host2-network"},
    {"accept_any_joined", "join2-earlier"},
    {"no_refresh", "join2"},
    {"no_cookie", "join2"},
    {"ready_without_all", "join2"},
    {"ready_before_parent", "join-racks"},
    {"old_join_returns", "join2-leaves"},
    {"leave_of_another", "join2-earlier"},
    {"leaf_stops_joining", "join-rack-direct"},
    {"cause_not_sent_up", "join-rack-direct"},
    {"cause_not_sent_down", "join-rack-direct"},
    {"ignores_loss", "join2-crash"},
    {"keeps_lost_member", "join2-crash"},
    {"ignores_parent_loss", "join-racks-crash"},
    {"names_another", "join2-crash"},
    {"silent_at_once", "join2"},
    {"asks_strangers_freely", "join-racks"},
    {"takes_any_answer", "join-racks-earlier"},
    {"plans_from_part", "form3"},
    {"values_as_read", "form3"},
    {"blames_first_other", "form3-differs"},
    {"leaves_ranks_waiting", "form3-world"},
    {"answer_to_another", "scatter2"},
    {"results_to_other_racks", "rack-direct"},
    {"flush_to_another_rack", "bypass-racks"},
    {"takes_strangers", "stranger"},
}};

std::string_view configuration_for(std::string_view name) {
    const auto found = std::ranges::find(shown_by, name, [](const auto& entry) { return entry.first; });
    return found == shown_by.end() ? "star2" : found->second;
}

std::vector<Break> make() {
    std::vector<Break> all;
    const auto add = [&all](std::string_view name, unsigned hazard, std::string_view what) {
        all.push_back({static_cast<unsigned>(all.size()) + 1, name, hazard, what, configuration_for(name)});
    };
#define ATP_ADD_BREAK(name, hazard, what) add(#name, hazard, what);
    ATP_BREAKS(ATP_ADD_BREAK)
    ATP_CONTROL_BREAKS(ATP_ADD_BREAK)
    ATP_ROUTING_BREAKS(ATP_ADD_BREAK)
#undef ATP_ADD_BREAK
    return all;
}

}  // namespace

std::span<const Break> breaks() {
    static const std::vector<Break> all = make();
    return all;
}

const Break* find_break(std::string_view name) {
    const auto found = std::ranges::find(breaks(), name, &Break::name);
    return found == breaks().end() ? nullptr : &*found;
}

}  // namespace atp::check
