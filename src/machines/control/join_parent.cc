// SPDX-License-Identifier: Apache-2.0
// What a tree sends to the parents of its channels, and takes from them.
#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "control/breaks.h"
#include "control/join_tree.h"
#include "wire/bytes.h"

namespace atp::control {
inline namespace ATP_VARIANT {

// One nonce for all channels would tell each parent what it needs to answer in the name of another one.
std::uint64_t JoinTree::up_nonce_of(const ChannelKey& key) const {
    std::array<std::byte, 15> message{std::byte{'J'}};  // no cookie and no group number has this length
    wire::store_u32(message.data() + 1, key.job);
    wire::store_u64(message.data() + 5, key.token);
    wire::store_u16(message.data() + 13, key.channel);
    return siphash(config_.secret, message);
}

bool JoinTree::is_of_parent(const Branch& branch, std::uint64_t nonce, const wire::Address& from) {
    if (branch.hosts) return false;
    return (nonce == branch.up_nonce && from.with_port(0) == branch.up.with_port(0)) ||
           ATP_CONTROL_BREAK(takes_any_answer);
}

void JoinTree::handle_joined(const wire::Joined& joined, const wire::Address& from, Time now) {
    Branch* branch = find(key_of(joined));
    if (branch == nullptr || !is_of_parent(*branch, joined.nonce, from) || joined.epoch > branch->up_epoch) {
        ++counters_.forged;
        return;
    }
    if (!branch->up_order.advance(joined)) {
        ++counters_.stale;
        return;
    }
    const BranchStatus was = status_of(*branch);
    if (joined.ready && !branch->up_ready) report(TreeNotice::Kind::parent_ready, *branch, from);
    note_answer(*branch, now);
    branch->up_lost = false;
    branch->up_data = from;
    branch->up_long_path.handle_joined(joined.epoch, now);
    branch->up_narrow = branch->up_narrow && branch->up_long_path.is_narrow(now, hold_of_parent(*branch), now);
    branch->up_ready = joined.ready && !branch->up_narrow;
    branch->up_hold = std::chrono::milliseconds(joined.hold_ms);
    if (joined.ticket != decltype(joined.ticket){}) branch->up_ticket = joined.ticket;
    branch->missing_units_above = joined.missing_units;
    branch->pace_above = joined.pace;
    branch->int32_lanes = joined.int32_lanes;
    if (!branch->up_narrow) branch->failures.forget_parent();
    branch->failures.report_of_parent(joined.edges.empty() ? std::nullopt : std::optional(joined.edges.front()));
    const bool states = branch->stated_above != joined.statements;
    branch->stated_above = joined.statements;
    if (!settle(*branch, was, now) && states) report_statements(*branch, now);
}

// The address of this switch is new to the parent, its cookie is too old, or the parent restarted: then its REFUSED
// waits for this JOIN (H26). However many RETRYs come, they cause one JOIN in 50 ms.
void JoinTree::handle_retry(const wire::Retry& retry, const wire::Address& from, Time now) {
    Branch* branch = find(key_of(retry));
    if (branch == nullptr || !is_of_parent(*branch, retry.nonce, from)) {
        ++counters_.forged;
        return;
    }
    note_answer(*branch, now);
    if (std::exchange(branch->up_cookie, retry.cookie) == retry.cookie) return;
    if (const Time next = std::max(branch->up_retry_next, now); next < branch->up_next) {
        branch->up_next = next;
        branch->up_retry_next = next + timing.hurry;
    }
    ascend(*branch, now);
    wake_at(next_look(*branch, now));
}

// Its other channels need not wait for their turn any more.
void JoinTree::note_answer(Branch& branch, Time now) {
    branch.up_detector.handle_received(now);
    branch.up_asker = {};
    if (!config_.pace->handle_answer(branch.up, now)) return;
    for (const auto& [key, other] : branches_) {
        const bool waits = !other->hosts && other->up_asker.family() != wire::Family::none;
        if (!waits || other->up.with_port(0) != branch.up.with_port(0)) continue;
        other->up_next = std::min(other->up_next, now);
        wake_at(next_look(*other, now));
    }
}

// What a RETRY repeats, and what a JOIN must have. Without a cookie, the parent looks at nothing else.
wire::Join JoinTree::question_of(Branch& branch) const {
    return {.nonce = branch.up_nonce,
            .terms = branch.terms,
            .epoch = ++branch.up_epoch,
            .level = static_cast<std::uint8_t>(branch.level == 0 && !branch.terms.has_single_unit() ? 1 : ATP_LEVELS),
            .units = {branch.complete_units.front()}};
}

// A switch that lost a member goes on joining, and says so, or its parent would take it for silent.
wire::Join JoinTree::join_upwards(Branch& branch) const {
    wire::Join join = question_of(branch);
    join.cookie = branch.up_cookie;
    join.begun = branch.begun || branch.up_ready;
    join.int32_path = branch.int32_path;
    join.ticket = branch.up_ticket;
    join.units = branch.complete_units;
    join.pace = branch.pace_below();
    if (const auto edge = branch.failures.first_own(); edge && !ATP_CONTROL_BREAK(cause_not_sent_up))
        join.edges = {*edge};
    join.job_name = branch.job_name;
    join.statements = branch.stated_below;
    const std::size_t most = most_join_bytes_upwards(branch);
    while (!join.statements.empty() && bytes_of(join) > most) join.statements.pop_back();
    if (bytes_of(join) > most) join.job_name.clear();
    return join;
}

// Sends a JOIN upwards if it is due and all children have joined. After that they may fail.
void JoinTree::ascend(Branch& branch, Time now) {
    if (branch.hosts || !may_ascend(branch) || branch.up_next > now) return;
    if (ATP_CONTROL_BREAK(leaf_stops_joining) && !branch.complete()) return;
    if (!has_answered(branch, now) && !ATP_CONTROL_BREAK(asks_strangers_freely)) return ask_stranger(branch, now);
    const wire::Join join = join_upwards(branch);
    const std::uint32_t packet_bytes = branch.up_ready || branch.up_narrow ? packet_bytes_of(branch.terms) : 0;
    outbox_.push_back({branch.up, join, {}, LongPath::join_bytes(join.epoch, packet_bytes)});
    branch.up_detector.handle_asked(now);
    if (packet_bytes > wire::least_question_bytes) branch.up_long_path.handle_sent(join.epoch, now);
    branch.up_next = now + interval_upwards(branch);
}

// Any host may be named as the parent of a job. One that has not answered gets at most one short question for each JOIN
// from below, and few from all channels together, so that naming it sends it no more than the JOINs brought (H97).
void JoinTree::ask_stranger(Branch& branch, Time now) {
    if (branch.up_asker.family() == wire::Family::none) return;
    const Time turn = config_.pace->ask(branch.up, branch.up_asker, key_of(branch.terms), now);
    if (turn > now) {
        // Another thread of this switch may get an answer before.
        branch.up_next = std::min(turn, now + timing.hurry);
        return;
    }
    branch.up_asker = {};
    branch.up_cookie = 0;
    outbox_.push_back({branch.up, question_of(branch)});
    branch.up_detector.handle_asked(now);
    branch.up_next = now + config_.impatient;
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
