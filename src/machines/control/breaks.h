// SPDX-License-Identifier: Apache-2.0
// Injected faults of the control plane for the model checker, as protocol/breaks.h for the data plane. In the product,
// ATP_CONTROL_BREAK(name) is the constant false, so the compiler removes it.
#pragma once

// X(name, hazard, what the faulty machine does)
#define ATP_CONTROL_BREAKS(X)                                                                        \
    X(accept_any_joined, 66, "a rank takes a JOINED that answers another process")                   \
    X(no_refresh, 36, "a ready rank sends no JOINs")                                                 \
    X(no_cookie, 66, "a rank does not repeat its JOIN with the cookie of a RETRY")                   \
    X(ready_without_all, 36, "a switch reports ready while one member is missing")                   \
    X(ready_before_parent, 36, "a leaf reports ready although its parent does not")                  \
    X(old_join_returns, 66, "an old JOIN brings back a member that left")                            \
    X(leave_of_another, 67, "a switch takes a LEAVE of another process for that of its member")      \
    X(leaf_stops_joining, 76, "a leaf that misses a member sends no JOINs to its parent")            \
    X(cause_not_sent_up, 76, "a leaf does not report the edge that failed to its parent")            \
    X(cause_not_sent_down, 76, "a switch does not report the edge that failed to its members")       \
    X(ignores_loss, 76, "a ready rank ignores that its tree is not ready any more")                  \
    X(keeps_lost_member, 77, "a switch keeps a member that it does not hear")                        \
    X(ignores_parent_loss, 77, "a leaf takes a parent that it does not hear for alive")              \
    X(names_another, 76, "a switch names another member than the one that failed")                   \
    X(silent_at_once, 80, "a switch takes a member for lost after half of the hold time")            \
    X(asks_strangers_freely, 97, "a leaf asks a parent that has not answered as often as any other") \
    X(takes_any_answer, 97, "a leaf takes the answers of any host for its parent's")                 \
    X(plans_from_part, 93, "a rank plans before it has read the values of all ranks")                \
    X(values_as_read, 93, "a rank takes the values of a round in the order in which it read")        \
    X(blames_first_other, 94, "a rank names the first that differs from itself, not the minority")   \
    X(leaves_ranks_waiting, 94, "a rank that gives up leaves ranks of its round waiting for others")

#ifdef ATP_BREAKABLE
namespace atp::control {
enum class ControlBreak : unsigned {
    none = 0,
#define ATP_CONTROL_BREAK_ENUM(name, hazard, what) name,
    ATP_CONTROL_BREAKS(ATP_CONTROL_BREAK_ENUM)
#undef ATP_CONTROL_BREAK_ENUM
};
extern thread_local ControlBreak active_break;
}  // namespace atp::control
#define ATP_CONTROL_BREAK(name) (::atp::control::active_break == ::atp::control::ControlBreak::name)
#else
#define ATP_CONTROL_BREAK(name) false
#endif
