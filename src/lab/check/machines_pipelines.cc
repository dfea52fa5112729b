// SPDX-License-Identifier: Apache-2.0
// Steps of switches that are pipelines, and their invariants.
#include "check/machines.h"

namespace atp::check::ATP_VARIANT {

void Machines::step_pipeline(unsigned node, Input input, const Flight& flight, Step& step) {
    PipelineSwitch& at = *states_[node].pipeline;
    Sent packet{.to = node, .size = static_cast<std::uint32_t>(flight.bytes.size())};
    std::ranges::copy(flight.bytes, packet.bytes.begin());
    const PipelinePass pass = at.handle(packet, input);
    step.violate(pass.violation);
    if (!pass.violation.empty()) return;
    assess_pass(at, pass, step);
    const std::span<const std::byte> bytes = std::span(packet.bytes).first(packet.size);
    Flight next = flight;
    std::uint8_t kind = 0;
    next.bytes = pass.passes_again ? bytes : packet_between_passes(flight.bytes, kind);
    if (pass.passes_again) {
        step.sent.push_back(next.sent_to(node));
    } else if (pass.verdict.route != protocol::Route::drop) {
        pass_on(node, next, bytes, step);
    }
}

// A tombstone lasts only until the next release at the same aggregator. A late copy may therefore claim an aggregator
// again, and no invariant forbids it.
void Machines::assess_pass(const PipelineSwitch& at, const PipelinePass& pass, Step& step) {
    const bool claims =
        pass.event == ATP_EVENT_CLAIMED || pass.event == ATP_EVENT_SUPERSEDED || pass.event == ATP_EVENT_TAKEN_OVER;
    const std::optional<FragmentPlace> before = at.fragment_of(pass.before);
    if (claims) step.claims.claimed = place_of(pass.header.token, pass.header.seq);
    if (pass.event == ATP_EVENT_SUPERSEDED) step.claims.superseded = before;
    if (pass.event != ATP_EVENT_COLLIDED || pass.kind != ATP_PASS_FIRST || !before) return;
    const FragmentPlace mine = place_of(pass.header.token, pass.header.seq);
    const int ahead = int{mine.offset} - int{before->offset};
    if (mine.job == before->job && ahead >= static_cast<int>(configuration_.window()))
        step.violate("a fragment collides with a finished predecessor of its own stream");
}

void Machines::summarise_pipeline(const PipelineSwitch& at, Step& step) const {
    step.summary.untouched = at.untouched();
    step.summary.held = at.held();
    if (!at.all_reclaimable()) step.violate("a held aggregator can never be reclaimed");
}

}  // namespace atp::check::ATP_VARIANT
