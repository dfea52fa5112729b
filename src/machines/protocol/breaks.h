/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Injected faults for the model checker, which must find every one of ATP_BREAKS. In the product, ATP_BREAK(name) is
 * the constant 0, so the compiler removes it. Only the libraries *_breakable are compiled with ATP_BREAKABLE, and only
 * `atp-lab check --break` links them. The faults of a pipeline are in decide_pipeline.h. The last fault is a variant
 * of SwitchML's machines, which the checker selects.
 */
#ifndef ATP_PROTOCOL_BREAKS_H
#define ATP_PROTOCOL_BREAKS_H

/* X(name, hazard, what the faulty machine does) */
#define ATP_BREAKS(X)                                                                                               \
    X(claim_after_release, 2, "the switch forgets the tombstone of a freed aggregator: a late duplicate claims it") \
    X(resend_claims, 3, "a resend claims an aggregator like a first sending")                                       \
    X(ignore_bitmap, 20, "the switch adds a packet that is already included")                                       \
    X(complete_early, 39, "the switch treats a set as complete while one member is missing")                        \
    X(ignore_token, 27, "the switch adds packets of another incarnation")                                           \
    X(ignore_sequence, 10, "the switch compares the job but not the sequence number")                               \
    X(collision_not_bypass, 15, "a collided packet is aggregated again at the next level")                          \
    X(resend_keeps_aggregator, 1, "a resend fetches the partial sum, and the aggregator keeps it too")              \
    X(resend_drops_own, 3, "a resend fetches the partial sum without adding its own lanes")                         \
    X(flush_keeps_aggregator, 17, "a FLUSH fetches the partial sum, and the aggregator keeps it too")               \
    X(never_supersede, 9, "an aggregator whose ACK was lost is never claimed again")                                \
    X(supersede_too_early, 10, "a newer packet of the stream claims an aggregator that is still gathering")         \
    X(ecn_lost_in_switch, 31, "the switch drops the ECN mark of an absorbed packet")                                \
    X(overflow_not_sticky, 22, "level 1 drops the OVERFLOW flag of level 0")                                        \
    X(merge_overlapping, 1, "the server adds a set that overlaps the included set")                                 \
    X(replace_smaller, 15, "the server replaces the included set with a smaller one")                               \
    X(trust_overflowed_lanes, 21, "the server adds lanes of a packet with the OVERFLOW flag")                       \
    X(no_reack, 8, "the server does not answer a PROBE for a finished fragment")                                    \
    X(retain_too_short, 8, "the server discards a result half a window too early")                                  \
    X(mix_modes, 24, "the server adds integers to a record in float mode")                                          \
    X(flush_forgets_plain, 24, "the gradient that a FLUSH returns lacks the PLAIN flag")                            \
    X(mix_purposes, 40, "the switch and the server add gradients of different purposes")                            \
    X(no_nack, 25, "the server drops a set that it cannot merge, without a NACK")                                   \
    X(no_probe, 5, "the worker sends no PROBE: a lost last fragment is never recovered")                            \
    X(window_unbounded, 10, "the worker sends seq + W without the ACK of seq")                                      \
    X(accept_any_ack, 27, "the worker accepts ACKs of another incarnation")                                         \
    X(add_rank_twice, 48, "the server adds the floats of one rank of a member twice")                               \
    X(include_member_early, 48, "the server includes a member with the floats of its first rank")                   \
    X(half_wide_copy, 54, "the server includes a member with the last packet of its floats, whatever is missing")   \
    X(half_wide_result, 57, "the worker takes one packet of a result in several for all of it")                     \
    X(owner_takes_empty_ack, 58, "the owner of a sum takes an ACK without lanes for its result")                    \
    X(ready_before_scan, 60, "the owner of a sum stays at home, though it has a number without an integer")         \
    X(complete_without_ready, 60, "the server completes a fragment of one sender before all workers take it")       \
    X(list_past_a_switch, 89, "a switch above a rack sends it a list, for which the rack frees no aggregator")      \
    X(list_of_held_sums, 89, "a switch lists ACKs of fragments that a switch in the path holds")                    \
    X(list_mixes_workers, 89, "a switch puts ACKs for different workers into one list")                             \
    X(list_has_one_index, 89, "a worker takes the index of the first ACK of a list for all of them")                \
    X(list_stops_at_stale, 89, "a worker ignores the rest of a list after an ACK that it has already")              \
    X(add_unclaimed, 42, "two ranks of a host add the same range of a chunk")                                       \
    X(add_anything, 45, "ranks of a host add chunks of different operations")                                       \
    X(open_early, 42, "a rank of a host adds before all ranks have loaded the chunk")                               \
    X(complete_early_on_host, 42, "a chunk counts as complete when its first range is added")                       \
    X(store_early, 42, "a rank of a host stores sums of a chunk that is not complete")                              \
    X(send_early, 42, "the rank that speaks for a host sends sums before all ranges are added")                     \
    X(load_early, 43, "a rank of a host loads into a slot that others still read")                                  \
    X(free_before_harvest, 63, "a pipeline frees an aggregator while a packet has only half of its lanes")          \
    X(harvest_unchecked, 63, "a pipeline takes the second half of a sum, whichever fragment is held")               \
    X(claim_unchecked, 63, "a pipeline claims in the second pass, whichever fragment is held by then")              \
    X(pass_decides_again, 18, "a pipeline decides about a packet with half of a sum as if it had just arrived")     \
    X(index_beyond_slice, 103, "the switch takes the index of a packet as it is, beyond the slice of the job")      \
    X(change_slice_at_once, 104, "a change of slices applies at once, in the middle of fragments")                  \
    X(recall_evicts, 104, "a change of slices frees the aggregators of the range before")                           \
    X(lost_is_included, 105, "the server counts all members of a lost fragment as included")                        \
    X(lost_waits, 105, "the server answers a PROBE for a lost fragment with WAIT: nobody sends again")              \
    X(overtaken_unasked, 5, "the timer asks for no fragment that newer ACKs have overtaken")                        \
    X(nack_of_probe_ignored, 106, "a worker ignores each NACK that answers a PROBE of its own")                     \
    X(probe_once, 83, "a worker sends one PROBE for a fragment, whatever is lost")                                  \
    X(index_learned_again, 107, "the server learns from a fragment again when it repeats its ACK")                  \
    X(index_for_sharers, 107, "a worker takes a new index for all slots that had the old one")                      \
    X(mark_for_one, 32, "the server returns a mark only to the worker whose packet completed the sum")              \
    X(mark_lost_in_repeat, 31, "the server drops the mark of a sum when it answers one worker")                     \
    X(mark_lost_in_flush, 31, "a switch drops the mark of the partial sum that a FLUSH fetches")                    \
    X(halves_each_mark, 32, "a worker halves its window for each marked ACK, not once for a window")                \
    X(never_grows_again, 32, "a worker that has halved its window never lets it grow again")                        \
    X(once_though_asked, 108, "a switch sends a result once for all, though members need one each")                 \
    X(version_bit_alone, 37, "SwitchML's switch distinguishes phases by one bit only, as published")

/* The checker has no groups and makes no copies, so only the simulator's swarm can find these, and must. */
#define ATP_SWARM_BREAKS(X)                                                                  \
    X(copy_to_receiver, 108, "a switch in the path copies a result to its own receiver too") \
    X(token_to_group, 70, "what goes to a group carries the token of the job, which others may read there")

#ifdef ATP_BREAKABLE
enum atp_break {
    ATP_BREAK_none = 0,
#define ATP_BREAK_ENUM(name, hazard, what) ATP_BREAK_##name,
    ATP_BREAKS(ATP_BREAK_ENUM) ATP_SWARM_BREAKS(ATP_BREAK_ENUM)
#undef ATP_BREAK_ENUM
};
extern "C" thread_local enum atp_break atp_active_break; /* C++ only: C code is never compiled with ATP_BREAKABLE */
#define ATP_BREAK(name) (atp_active_break == ATP_BREAK_##name)
#else
#define ATP_BREAK(name) 0
#endif

#endif
