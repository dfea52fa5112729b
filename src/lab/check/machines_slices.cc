// SPDX-License-Identifier: Apache-2.0
// Slices of a table that change while packets are on their way. Two divisions of the table follow each other: each job
// is a tenant, whose weight changes; if there is one job, a tenant before it has jobs or not.
#include <algorithm>
#include <vector>

#include "check/machines.h"
#include "control/table_slices.h"
#include "protocol/sequence.h"

namespace atp::check::ATP_VARIANT {
namespace {

std::vector<atp_range> division_of(const Configuration& configuration, bool changed) {
    std::vector<control::SliceClaim> claims;
    const bool has_lent = configuration.jobs == 1 && changed;
    if (has_lent) claims.push_back({});
    for (unsigned job = 0; job < configuration.jobs; ++job) {
        claims.push_back({.weight = (job == 0) != changed && configuration.jobs > 1 ? 2U : 1U});
    }
    auto slices = control::slices_of(configuration.aggregators, claims, control::SliceSize::any);
    if (has_lent) slices.erase(slices.begin());
    return slices;
}

}  // namespace

void Machines::cut_table(NodeState& at, bool changed) {
    const std::vector<atp_range> slices = division_of(configuration_, changed);
    for (unsigned job = 0; job < configuration_.jobs; ++job) {
        at.process->sliced().set_slice({job_number(job), job_token(job, false)}, slices[job], 1);
    }
}

// An aggregator in use keeps its place until it is free.
void Machines::step_change(NodeState& at, Step& step) {
    const atp_slice& slice = *table_of(at).slice_of(job_number(0), job_token(0, false));
    if (slice.before.size != 0) {
        at.process->sliced().end_changes();
    } else {
        const atp_range first = division_of(configuration_, false).front();
        cut_table(at, slice.now.base == first.base && slice.now.size == first.size);
    }
    for (std::uint32_t place = 0; place < configuration_.aggregators; ++place) {
        if (table_of(at).aggregator(place).status != seen_[place].status)
            step.violate("a change of slices freed an aggregator in use");
    }
}

void Machines::summarise_slices(const NodeState& at, Step& step) const {
    step.summary.may_change = true;
    std::vector<const atp_aggregator*> held;
    for (std::uint32_t place = 0; place < configuration_.aggregators; ++place) {
        const atp_aggregator& aggregator = table_of(at).aggregator(place);
        if (aggregator.status == ATP_AGGREGATOR_FREE) continue;
        const auto same = [&](const atp_aggregator* other) {
            return other->token == aggregator.token && other->seq == aggregator.seq && other->unit == aggregator.unit;
        };
        if (std::ranges::any_of(held, same)) step.violate("a fragment has two aggregators of one switch");
        held.push_back(&aggregator);
        // A change lasts longer than a fragment, unless one is abandoned.
        const atp_slice* const slice = table_of(at).slice_of(aggregator.job, aggregator.token);
        if (slice == nullptr || slice->has_from == 0) continue;
        const std::uint32_t from = slice->from[aggregator.channel & (ATP_SLICE_STREAMS - 1U)];
        if (protocol::distance(from, aggregator.seq) < 0) step.summary.may_change = false;
    }
}

}  // namespace atp::check::ATP_VARIANT
