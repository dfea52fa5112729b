// SPDX-License-Identifier: Apache-2.0
#include "control/giving_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/breaks.h"

namespace atp::control {
inline namespace ATP_VARIANT {

Result<void> GivingUp::handle_arrivals(std::int64_t processes) {
    if (processes <= 1) return {};
    is_displaced_ = true;
    return fail(Operation::rendezvous, Reason::mismatched, {},
                // errors.md, forms, mismatched: two processes have one rank, or an earlier one still runs
                fmt::format("'{}': rank {} arrived twice: give each process its own rank, and each communicator its "
                            "own name",
                            round_, rank_));
}

void GivingUp::handle_round(const FactRound& round) {
    widest_ = std::max(widest_, round.widest());
    if (const auto notice = round.notice()) handle_notice(*notice);
}

void GivingUp::handle_notice(const wire::GaveUp& notice) {
    notified_ = true;
    notice_ = stamped(notice);
}

// A rank that waits for this one may be past the round in which the first reason came, so that reason is passed on.
std::optional<Farewell> GivingUp::give_up(const Error& error, std::string_view first) {
    if (is_displaced_) return std::nullopt;
    const bool is_new = !std::exchange(notified_, true);
    return Farewell{.is_new = is_new,
                    .value = is_new ? stamped(notice_of(rank_, error)) : std::exchange(notice_, {}),
                    .round = round_.empty() ? std::string(first) : round_,
                    .ranks = ATP_CONTROL_BREAK(leaves_ranks_waiting) ? 0 : widest_,
                    .waits = rank_ == 0};
}

}  // namespace ATP_VARIANT
}  // namespace atp::control
