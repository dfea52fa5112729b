/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Decision of a pipeline of match tables and registers: what atp_decide() becomes on a target that may access each
 * register once while a packet passes, and that reads one word of 32 bits from a register. A packet may pass several
 * times. docs/develop/p4.md explains the passes, and lists the cases in which a pipeline does less than atp_decide().
 *
 * Freestanding C: tests and the model checker compile this file, and the P4 program of a pipeline answers to its
 * vectors (tests/conformance/decide_pipeline.json). pipeline_cells.h has the registers.
 *
 * Ownership: the caller owns the words of the aggregator during a pass. Between two passes of a packet, other packets
 *   may pass.
 * Calling order: atp_pipeline_pass() with kind ATP_PASS_FIRST; move lanes as the outcome says. ATP_PIPELINE_RESUBMIT:
 *   the packet as it arrived passes again, with `next`. ATP_PIPELINE_RECIRCULATE: the packet as it is now passes again,
 *   with `next`. Every other action ends the packet.
 * Failure: a pass that is lost or delayed loses time and never changes a sum.
 */
#ifndef ATP_PROTOCOL_DECIDE_PIPELINE_H
#define ATP_PROTOCOL_DECIDE_PIPELINE_H

#include "protocol/pipeline_cells.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

/* Injected faults: a test defines the macro before this file. */
#ifndef ATP_PIPELINE_BREAK
#define ATP_PIPELINE_BREAK(name) 0
#endif

/* Actions beside those of enum atp_packet_action. */
enum atp_pipeline_action {
    ATP_PIPELINE_RESUBMIT = 3,
    ATP_PIPELINE_RECIRCULATE = 4,
};

/* Lanes form pairs: a register has an even lane as its upper word, and the odd lane after it as its lower word. */
enum atp_pipeline_lanes {
    ATP_PAIRS_NONE = 0,
    ATP_PAIRS_STORE = 1,
    ATP_PAIRS_ADD = 2,            /* modulo 2^32 */
    ATP_PAIRS_ADD_EMIT_UPPER = 3, /* add, then copy the upper words into the packet */
    ATP_PAIRS_EMIT_UPPER = 4,
    ATP_PAIRS_EMIT_LOWER = 5,
};

struct atp_pipeline_outcome {
    uint8_t packet; /* enum atp_packet_action or enum atp_pipeline_action */
    uint8_t lanes;  /* enum atp_pipeline_lanes */
    uint8_t event;  /* enum atp_switch_event; each packet has one event besides PASSED at most */
    uint8_t next;   /* kind of the next pass */
    uint32_t seen;  /* of the next pass */
};

/* ---- stateless parts */

static inline struct atp_pipeline_outcome atp_pipeline_end(uint8_t packet, uint8_t lanes, uint8_t event) {
    struct atp_pipeline_outcome outcome;
    outcome.packet = packet;
    outcome.lanes = lanes;
    outcome.event = event;
    outcome.next = ATP_PASS_FIRST;
    outcome.seen = 0;
    return outcome;
}

static inline struct atp_pipeline_outcome atp_pipeline_again(uint8_t packet, uint8_t lanes, uint8_t event, uint8_t next,
                                                             uint32_t seen) {
    struct atp_pipeline_outcome outcome = atp_pipeline_end(packet, lanes, event);
    outcome.next = next;
    outcome.seen = seen;
    return outcome;
}

static inline struct atp_pipeline_outcome atp_pipeline_of(struct atp_decision decision) {
    return atp_pipeline_end(decision.packet, ATP_PAIRS_NONE, decision.event);
}

static inline struct atp_pipeline_outcome atp_pipeline_forward(uint8_t event) {
    return atp_pipeline_end(ATP_PACKET_FORWARD, ATP_PAIRS_NONE, event);
}

/* Forwards to the next level. Unlike a packet that is forwarded alone, the next level may handle it. */
static inline struct atp_pipeline_outcome atp_pipeline_pass_on(struct atp_header* packet, uint8_t event) {
    packet->hop = (uint8_t)(packet->hop + 1);
    return atp_pipeline_forward(event);
}

static inline uint32_t atp_tag_of(const struct atp_header* packet, uint32_t stream) {
    return stream << ATP_TAG_STREAM_SHIFT | (packet->seq & ATP_TAG_SEQ_MASK);
}

/* The part of `body` that a FLUSH knows. */
static inline uint32_t atp_body_place(uint32_t seq, uint32_t place) {
    return seq >> ATP_TAG_STREAM_SHIFT << ATP_BODY_SEQ_SHIFT | place << ATP_BODY_PLACE_SHIFT;
}
#define ATP_BODY_PLACE_MASK (0xFFFFu & ~(uint32_t)(ATP_BODY_PROOF | ATP_BODY_PLAIN | ATP_BODY_AUDIT))

static inline uint32_t atp_body_of(const struct atp_header* packet, uint32_t place) {
    uint32_t body = (uint32_t)atp_purpose_of(packet) << ATP_BODY_PURPOSE_SHIFT | atp_body_place(packet->seq, place);
    if (packet->flags & ATP_FLAG_PROOF) body |= ATP_BODY_PROOF;
    if (packet->flags & ATP_FLAG_PLAIN) body |= ATP_BODY_PLAIN;
    if (packet->flags & ATP_FLAG_AUDIT) body |= ATP_BODY_AUDIT;
    return body;
}

/* True if the tag `seen` is a fragment of the same stream that is finished: see atp_supersedes(). */
static inline int atp_tag_superseded(const struct atp_header* packet, uint32_t mine, uint32_t seen) {
    uint32_t ahead = (mine - seen) & ATP_TAG_SEQ_MASK;
    if (seen >> ATP_TAG_STREAM_SHIFT != mine >> ATP_TAG_STREAM_SHIFT) return 0;
    return ahead >= 1u << (packet->window_log2 & 31u) && ahead < 1u << (ATP_TAG_STREAM_SHIFT - 1u);
}

static inline int atp_is_one_bit(uint32_t bits) { return bits != 0 && (bits & (bits - 1u)) == 0; }

/* True for a gradient whose lanes this pipeline can add. */
static inline int atp_pipeline_can_add(const struct atp_header* packet, uint32_t lanes, const struct atp_pass* pass) {
    return packet->lanes == ATP_INT32_LANES && lanes == pass->full_lanes &&
           atp_level_mask(packet) == pass->place.mask && atp_is_one_bit(atp_contribution(packet));
}

/* The packet names the members of a sum. At level 1 they are whole units. */
static inline void atp_pipeline_set_bitmap(struct atp_header* packet, uint32_t bitmap) {
    if (packet->hop == 0) {
        packet->bitmap0 = bitmap;
    } else {
        packet->bitmap1 = bitmap;
        packet->flags = (uint16_t)(packet->flags | ATP_FLAG_WHOLE);
    }
}

/* ---- gradients */

/* The same fragment: adds the gradient, or finds it included. */
static inline struct atp_pipeline_outcome atp_pipeline_gather(struct atp_header* packet, struct atp_pass* pass,
                                                              struct atp_pipeline_words* words) {
    uint32_t mine = atp_contribution(packet);
    uint32_t before = atp_cell_body_gather(pass, words, atp_body_of(packet, pass->place.place), mine);
    uint32_t marks = atp_cell_mark_add(pass, words, packet->flags & ATP_PIPELINE_MARKS);
    uint32_t after = before | mine;
    int again = (before & mine) != 0;
    atp_cell_time_touch(pass, words);
    if (before == 0) return atp_pipeline_of(atp_forward_alone(packet, ATP_EVENT_MISFIT));
    if (after != pass->place.mask) {
        return again ? atp_pipeline_end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_DUPLICATE)
                     : atp_pipeline_end(ATP_PACKET_DROP, ATP_PAIRS_ADD, ATP_EVENT_ADDED);
    }
    packet->flags = (uint16_t)(packet->flags | marks);
    atp_pipeline_set_bitmap(packet, after);
    return atp_pipeline_again(ATP_PIPELINE_RECIRCULATE, again ? ATP_PAIRS_EMIT_UPPER : ATP_PAIRS_ADD_EMIT_UPPER,
                              again ? ATP_EVENT_REEMITTED : ATP_EVENT_COMPLETED, ATP_PASS_HARVEST, 0);
}

static inline struct atp_pipeline_outcome atp_pipeline_store(const struct atp_header* packet, struct atp_pass* pass,
                                                             struct atp_pipeline_words* words, uint8_t event) {
    atp_cell_body_write(pass, words, atp_body_of(packet, pass->place.place), atp_contribution(packet));
    atp_cell_mark_write(pass, words, packet->flags & ATP_PIPELINE_MARKS);
    atp_cell_time_touch(pass, words);
    return atp_pipeline_end(ATP_PACKET_DROP, ATP_PAIRS_STORE, event);
}

/* Second pass: claims only if the tag is still the one that the first pass saw. */
static inline struct atp_pipeline_outcome atp_pipeline_claim_seen(struct atp_header* packet, struct atp_pass* pass,
                                                                  struct atp_pipeline_words* words, uint32_t mine) {
    uint32_t before = atp_cell_tag_swap(pass, words, pass->seen, mine);
    if (ATP_PIPELINE_BREAK(claim_unchecked)) before = pass->seen;
    if (before == pass->seen) {
        uint8_t event = atp_tag_superseded(packet, mine, pass->seen) ? ATP_EVENT_SUPERSEDED : ATP_EVENT_TAKEN_OVER;
        return atp_pipeline_store(packet, pass, words, event);
    }
    if (before == mine) return atp_pipeline_gather(packet, pass, words);
    return atp_pipeline_of(atp_collide(packet));
}

static inline struct atp_pipeline_outcome atp_pipeline_claim(struct atp_header* packet, struct atp_pass* pass,
                                                             struct atp_pipeline_words* words) {
    uint32_t mine = atp_tag_of(packet, pass->place.stream);
    uint32_t seen;
    if (atp_cell_tomb_is(pass, words, mine, packet->seq))
        return atp_pipeline_of(atp_forward_alone(packet, ATP_EVENT_LATE));
    if (pass->kind == ATP_PASS_CLAIM) return atp_pipeline_claim_seen(packet, pass, words, mine);
    seen = atp_cell_tag_claim(pass, words, mine);
    if (seen == 0) return atp_pipeline_gather(packet, pass, words);
    if (seen & ATP_TAG_FREE) return atp_pipeline_store(packet, pass, words, ATP_EVENT_CLAIMED);
    if (atp_cell_time_is_aged(pass, words) || atp_tag_superseded(packet, mine, seen))
        return atp_pipeline_again(ATP_PIPELINE_RESUBMIT, ATP_PAIRS_NONE, ATP_EVENT_PASSED, ATP_PASS_CLAIM, seen);
    return atp_pipeline_of(atp_collide(packet));
}

/*
 * The last pass of a sum. The packet has the upper lanes. The lower lanes belong to the same sum only if the tag, the
 * shape and the bitmap are still those of the packet.
 */
static inline struct atp_pipeline_outcome atp_pipeline_harvest(struct atp_header* packet, struct atp_pass* pass,
                                                               struct atp_pipeline_words* words) {
    uint32_t mine = atp_tag_of(packet, pass->place.stream);
    int is_leaving = pass->kind != ATP_PASS_HARVEST;
    uint32_t expected = is_leaving ? mine | ATP_TAG_LEAVING : mine;
    uint32_t before = atp_cell_tag_swap(pass, words, expected, is_leaving ? ATP_TAG_FREE : mine);
    uint32_t bitmap = atp_cell_body_gather(pass, words, atp_body_of(packet, pass->place.place), 0);
    if (ATP_PIPELINE_BREAK(free_before_harvest) && is_leaving) before = expected;
    if (ATP_PIPELINE_BREAK(harvest_unchecked)) before = expected, bitmap = atp_contribution(packet);
    if (before != expected || bitmap != atp_contribution(packet))
        return atp_pipeline_end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
    packet->hop = (uint8_t)(packet->hop + 1);
    if (pass->kind == ATP_PASS_RETURN)
        return atp_pipeline_end(ATP_PACKET_RETURN, ATP_PAIRS_EMIT_LOWER, ATP_EVENT_FLUSHED);
    return atp_pipeline_end(ATP_PACKET_FORWARD, ATP_PAIRS_EMIT_LOWER,
                            is_leaving ? ATP_EVENT_FETCHED : ATP_EVENT_PASSED);
}

/* ---- packets that take what is held */

/* Marks the aggregator as leaving. Returns false if it is not mine any more. */
static inline int atp_pipeline_leave(struct atp_pass* pass, struct atp_pipeline_words* words, uint32_t mine) {
    uint32_t leaving = ATP_PIPELINE_BREAK(free_before_harvest) ? ATP_TAG_FREE : (mine | ATP_TAG_LEAVING);
    return atp_cell_tag_swap(pass, words, mine, leaving) == mine;
}

static inline struct atp_pipeline_outcome atp_pipeline_resend(struct atp_header* packet, uint32_t lanes,
                                                              struct atp_pass* pass, struct atp_pipeline_words* words) {
    uint32_t mine = atp_tag_of(packet, pass->place.stream);
    uint32_t bits = atp_contribution(packet);
    uint32_t body = atp_body_of(packet, pass->place.place);
    uint32_t before;
    uint32_t marks;
    if (pass->kind == ATP_PASS_FIRST) {
        atp_cell_tomb_write(pass, words, mine, packet->seq);
        if (packet->hop != 0 || !atp_pipeline_can_add(packet, lanes, pass) ||
            atp_cell_tag_swap(pass, words, mine, mine) != mine || atp_cell_body_gather(pass, words, body, 0) == 0)
            return atp_pipeline_pass_on(packet, ATP_EVENT_RESENT);
        return atp_pipeline_again(ATP_PIPELINE_RESUBMIT, ATP_PAIRS_NONE, ATP_EVENT_PASSED, ATP_PASS_FETCH, 0);
    }
    if (!atp_pipeline_leave(pass, words, mine)) return atp_pipeline_pass_on(packet, ATP_EVENT_RESENT);
    before = atp_cell_body_gather(pass, words, body, bits);
    marks = atp_cell_mark_add(pass, words, packet->flags & ATP_PIPELINE_MARKS);
    if (before == 0) return atp_pipeline_pass_on(packet, ATP_EVENT_RESENT);
    packet->flags = (uint16_t)(packet->flags | marks);
    atp_pipeline_set_bitmap(packet, before | bits);
    return atp_pipeline_again(ATP_PIPELINE_RECIRCULATE,
                              (before & bits) ? ATP_PAIRS_EMIT_UPPER : ATP_PAIRS_ADD_EMIT_UPPER, ATP_EVENT_PASSED,
                              ATP_PASS_TAKE, 0);
}

/* First pass of a flush: the shape, of which the flush knows only a part, goes with it to the second pass. */
static inline struct atp_pipeline_outcome atp_pipeline_flush_first(const struct atp_header* packet,
                                                                   struct atp_pass* pass,
                                                                   struct atp_pipeline_words* words, uint32_t mine) {
    uint32_t known = atp_body_place(packet->seq, pass->place.place);
    uint32_t before;
    uint32_t body;
    atp_cell_tomb_write(pass, words, mine, packet->seq);
    before = atp_cell_tag_swap(pass, words, mine, mine);
    body = atp_cell_body_read(pass, words);
    if (before & ATP_TAG_FREE) return atp_pipeline_end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_CLOSED);
    if (before != mine || (body & ATP_BODY_PLACE_MASK) != known || atp_level_mask(packet) != pass->place.mask)
        return atp_pipeline_end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
    return atp_pipeline_again(ATP_PIPELINE_RESUBMIT, ATP_PAIRS_NONE, ATP_EVENT_PASSED, ATP_PASS_FETCH, body);
}

static inline struct atp_pipeline_outcome atp_pipeline_flush(struct atp_header* packet, struct atp_pass* pass,
                                                             struct atp_pipeline_words* words) {
    uint32_t mine = atp_tag_of(packet, pass->place.stream);
    uint32_t bitmap;
    uint32_t flags;
    if (pass->kind == ATP_PASS_FIRST) return atp_pipeline_flush_first(packet, pass, words, mine);
    if (!atp_pipeline_leave(pass, words, mine))
        return atp_pipeline_end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
    bitmap = atp_cell_body_gather(pass, words, pass->seen, 0);
    if (bitmap == 0) return atp_pipeline_end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
    flags = ATP_FLAG_BYPASS | atp_cell_mark_add(pass, words, 0);
    if (pass->seen & ATP_BODY_PROOF) flags |= ATP_FLAG_PROOF;
    if (pass->seen & ATP_BODY_PLAIN) flags |= ATP_FLAG_PLAIN;
    if (pass->seen & ATP_BODY_AUDIT) flags |= ATP_FLAG_AUDIT;
    packet->type = ATP_TYPE_GRADIENT;
    packet->lanes = ATP_INT32_LANES;
    packet->flags = (uint16_t)flags;
    packet->worker = ATP_WORKER_ALL;
    packet->argument = pass->seen >> ATP_BODY_PURPOSE_SHIFT;
    atp_pipeline_set_bitmap(packet, bitmap);
    return atp_pipeline_again(ATP_PIPELINE_RECIRCULATE, ATP_PAIRS_EMIT_UPPER, ATP_EVENT_PASSED, ATP_PASS_RETURN, 0);
}

static inline struct atp_pipeline_outcome atp_pipeline_release(const struct atp_header* packet, struct atp_pass* pass,
                                                               struct atp_pipeline_words* words) {
    uint32_t mine = atp_tag_of(packet, pass->place.stream);
    uint32_t before;
    if (pass->kind == ATP_PASS_EXPIRE) {
        before = atp_cell_tag_swap(pass, words, pass->seen, ATP_TAG_FREE);
        return atp_pipeline_forward(before == pass->seen ? ATP_EVENT_EXPIRED : ATP_EVENT_PASSED);
    }
    atp_cell_tomb_write(pass, words, mine, packet->seq);
    before = atp_cell_tag_swap(pass, words, mine, ATP_TAG_FREE);
    if (before == mine) return atp_pipeline_forward(ATP_EVENT_RELEASED);
    if (before & ATP_TAG_FREE)
        return atp_pipeline_forward(packet->type == ATP_TYPE_NACK ? ATP_EVENT_CLOSED : ATP_EVENT_PASSED);
    if (!atp_cell_time_is_aged(pass, words)) return atp_pipeline_forward(ATP_EVENT_PASSED);
    return atp_pipeline_again(ATP_PIPELINE_RESUBMIT, ATP_PAIRS_NONE, ATP_EVENT_PASSED, ATP_PASS_EXPIRE, before);
}

/* ---- any packet */

static inline struct atp_pipeline_outcome atp_pipeline_gradient(struct atp_header* packet, uint32_t lanes,
                                                                struct atp_pass* pass,
                                                                struct atp_pipeline_words* words) {
    int resend = (packet->flags & ATP_FLAG_RESEND) != 0;
    if (pass->kind >= ATP_PASS_HARVEST && !ATP_PIPELINE_BREAK(pass_decides_again))
        return atp_pipeline_harvest(packet, pass, words);
    if ((packet->flags & ATP_FLAG_BYPASS) || packet->hop >= ATP_LEVELS) return atp_pipeline_forward(ATP_EVENT_BYPASSED);
    if (pass->place.place == 0) return atp_pipeline_forward(ATP_EVENT_PASSED);
    if (!atp_has_own_form(packet)) return atp_pipeline_of(atp_forward_alone(packet, ATP_EVENT_MISFIT));
    if (resend) return atp_pipeline_resend(packet, lanes, pass, words);
    if (!atp_fits_level(packet)) return atp_pipeline_of(atp_forward_alone(packet, ATP_EVENT_MISFIT));
    if (atp_contribution(packet) == atp_level_mask(packet)) return atp_pipeline_pass_on(packet, ATP_EVENT_SINGLE);
    if (!atp_pipeline_can_add(packet, lanes, pass)) return atp_pipeline_of(atp_forward_alone(packet, ATP_EVENT_MISFIT));
    return atp_pipeline_claim(packet, pass, words);
}

/*
 * One pass of a packet with `lanes` lanes. A packet of a job that was not admitted passes unchanged. If the job was
 * dismissed between two passes, a packet that has half of a sum is dropped.
 */
static inline struct atp_pipeline_outcome atp_pipeline_pass(struct atp_header* packet, uint32_t lanes,
                                                            struct atp_pass* pass, struct atp_pipeline_words* words) {
    pass->accesses = 0;
    if (pass->place.stream == 0) {
        if (pass->kind < ATP_PASS_HARVEST) return atp_pipeline_forward(ATP_EVENT_PASSED);
        return atp_pipeline_end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
    }
    switch (packet->type) {
        case ATP_TYPE_GRADIENT: return atp_pipeline_gradient(packet, lanes, pass, words);
        case ATP_TYPE_ACK: return atp_pipeline_release(packet, pass, words);
        case ATP_TYPE_NACK:
            if (packet->flags & ATP_FLAG_BYPASS) return atp_pipeline_release(packet, pass, words);
            break;
        case ATP_TYPE_FLUSH:
            if (pass->place.place != 0) return atp_pipeline_flush(packet, pass, words);
            break;
        default: break;
    }
    return atp_pipeline_forward(ATP_EVENT_PASSED);
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
