/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Injected faults for the model checker, which must find every one of them. In the product, ATP_BREAK(name) is the
 * constant 0, so the compiler removes it. Only the library atp_protocol_breakable is compiled with ATP_BREAKABLE, and
 * only `atp-lab check --break` links it. The last fault is no line of code: the checker selects that mode of
 * SwitchML's machines.
 */
#ifndef ATP_PROTOCOL_BREAKS_H
#define ATP_PROTOCOL_BREAKS_H

/* X(name, hazard, what the faulty machine does) */
#define ATP_BREAKS(X)                                                                                \
    X(claim_after_release, 2, "the switch forgets whom it released: a late duplicate claims")        \
    X(resend_claims, 3, "a resend claims an aggregator like a first sending")                        \
    X(ignore_bitmap, 20, "the switch adds a packet whose bit is already in")                         \
    X(complete_early, 39, "the switch calls a set complete when one member is missing")              \
    X(ignore_token, 27, "the switch takes packets of another incarnation for its own")               \
    X(ignore_sequence, 10, "the switch compares the job but not the sequence number")                \
    X(collision_not_bypass, 15, "a collided packet is aggregated again at the next level")           \
    X(resend_keeps_aggregator, 1, "a resend takes the partial sum out and leaves it in as well")     \
    X(resend_drops_own, 3, "a resend brings the aggregator's set but not its own lanes")             \
    X(flush_keeps_aggregator, 17, "a flush hands the partial sum out and leaves it in as well")      \
    X(never_supersede, 9, "an aggregator whose ACK was lost blocks its slot for ever")               \
    X(supersede_too_early, 10, "any newer packet of the stream takes an unfinished aggregator over") \
    X(ecn_lost_in_switch, 31, "a mark on an absorbed packet is forgotten")                           \
    X(overflow_not_sticky, 22, "the overflow of level 0 is forgotten at level 1")                    \
    X(merge_overlapping, 1, "the server adds a set that overlaps what it has")                       \
    X(replace_smaller, 15, "the server replaces what it has by a set that does not contain it")      \
    X(trust_overflowed_lanes, 21, "the server adds lanes under the overflow flag")                   \
    X(no_reack, 8, "the server is silent when a worker asks for a finished result again")            \
    X(retain_too_short, 8, "the server forgets a result half a window too early")                    \
    X(mix_modes, 24, "the server adds integers to a record in float mode")                           \
    X(flush_forgets_plain, 24, "what a flush returns no longer says that its integers are plain")    \
    X(mix_purposes, 40, "the switch and the server add up what is for different purposes")           \
    X(no_nack, 25, "the server drops what it cannot merge and sends no NACK")                        \
    X(no_probe, 5, "the worker relies on newer ACKs alone: the tail is never recovered")             \
    X(window_unbounded, 10, "the worker sends seq + W without the ACK of seq")                       \
    X(accept_any_ack, 27, "the worker takes ACKs of another incarnation")                            \
    X(version_bit_alone, 37, "SwitchML's switch tells phases apart by a bit alone, as it was printed")

#ifdef ATP_BREAKABLE
enum atp_break {
    ATP_BREAK_none = 0,
#define ATP_BREAK_ENUM(name, hazard, what) ATP_BREAK_##name,
    ATP_BREAKS(ATP_BREAK_ENUM)
#undef ATP_BREAK_ENUM
};
extern "C" thread_local enum atp_break atp_active_break; /* C++ only: C code is never compiled with ATP_BREAKABLE */
#define ATP_BREAK(name) (atp_active_break == ATP_BREAK_##name)
#else
#define ATP_BREAK(name) 0
#endif

#endif
