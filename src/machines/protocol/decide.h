/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Decision of a switch: a pure function of a packet's header, of the state of the aggregator that it names, and of
 * the time. Freestanding C, without loops and without memory other than its arguments: user space, the simulator, the
 * model checker and eBPF compile this file. It decides how lanes move; each caller moves them.
 *
 * Ownership: the caller owns the aggregator exclusively (one core or one lock) during all steps of the calling order.
 * Calling order: atp_decide(); then execute `lanes`; if an addition overflowed, atp_overflowed(); then execute
 *   `packet`.
 * Result: both arguments are rewritten in place. The header is then the header to send, the aggregator the state to
 *   keep.
 */
#ifndef ATP_PROTOCOL_DECIDE_H
#define ATP_PROTOCOL_DECIDE_H

#include "protocol/breaks.h"
#include "wire/format.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

enum atp_aggregator_status {
    ATP_AGGREGATOR_FREE = 0,      /* unused; keeps the identity of its last fragment (tombstone) */
    ATP_AGGREGATOR_GATHERING = 1, /* holds the sum of `bitmap` */
    ATP_AGGREGATOR_COMPLETE = 2,  /* sum sent; kept until the ACK, so that a lost packet can be sent again */
};

/*
 * Flags of an aggregator. Marks are ORed over the added packets. The others are the kind of the lanes: only packets of
 * equal kind are added. Lanes are int32 without INT16 and INT8.
 */
enum atp_aggregator_flag {
    ATP_AGGREGATOR_INT16 = 1 << 0,
    ATP_AGGREGATOR_INT8 = 1 << 1,
    ATP_AGGREGATOR_PROOF = 1 << 2,
    ATP_AGGREGATOR_ECN = ATP_FLAG_ECN,
    ATP_AGGREGATOR_OVERFLOW = ATP_FLAG_OVERFLOW,
    ATP_AGGREGATOR_ECN_DOWN = 1 << 5,
    ATP_AGGREGATOR_AUDIT = ATP_FLAG_AUDIT,
    ATP_AGGREGATOR_PLAIN = ATP_FLAG_PLAIN,
};
#define ATP_AGGREGATOR_MARKS (ATP_AGGREGATOR_ECN | ATP_AGGREGATOR_OVERFLOW | ATP_AGGREGATOR_ECN_DOWN)
#define ATP_AGGREGATOR_KIND (~ATP_AGGREGATOR_MARKS & 0xFF)

/* All zero: a free aggregator without a tombstone, since no job has token 0. */
struct atp_aggregator {
    uint64_t token;
    uint32_t job;
    uint32_t seq;
    uint16_t channel;
    uint8_t status;
    uint8_t flags; /* enum atp_aggregator_flag */
    uint32_t bitmap;
    uint16_t lanes;   /* number in use; a packet with another number is not added */
    uint16_t purpose; /* a packet with another purpose is not added */
    uint32_t unit; /* level 0: unit of the fragment, as in bitmap1, so that racks never mix on one switch. Level 1: 0,
                      so that levels never mix */
    uint32_t touched_us; /* wraps after 71 minutes: an aggregator idle for more than half of that may look recent */
};

enum atp_packet_action {
    ATP_PACKET_DROP = 0,    /* absorbed */
    ATP_PACKET_FORWARD = 1, /* forwarded in its direction */
    ATP_PACKET_RETURN = 2,  /* turned into a gradient and sent back, towards the server */
};

enum atp_lanes_action {
    ATP_LANES_NONE = 0,
    ATP_LANES_STORE = 1,    /* packet -> aggregator */
    ATP_LANES_ADD = 2,      /* packet added into aggregator */
    ATP_LANES_ADD_EMIT = 3, /* packet added into aggregator, sum copied into packet */
    ATP_LANES_EMIT = 4,     /* aggregator -> packet; on RETURN the packet grows to `lanes` of the aggregator */
};

/* Flags of a packet that have the same bit in an aggregator. */
#define ATP_FLAGS_ALIKE (ATP_FLAG_ECN | ATP_FLAG_OVERFLOW | ATP_FLAG_AUDIT | ATP_FLAG_PLAIN)

/* Outcome of a decision, for counters and traces. */
enum atp_switch_event {
    ATP_EVENT_PASSED = 0, /* no effect here: PROBE, WAIT, another level, release of another fragment */
    ATP_EVENT_CLAIMED = 1,
    ATP_EVENT_ADDED = 2,
    ATP_EVENT_COMPLETED = 3,
    ATP_EVENT_SINGLE = 4,    /* the only contributor of its level: forwarded as complete, nothing stored */
    ATP_EVENT_DUPLICATE = 5, /* already included: absorbed */
    ATP_EVENT_REEMITTED = 6, /* already included and complete: the sum is sent again */
    ATP_EVENT_COLLIDED = 7,
    ATP_EVENT_BYPASSED = 8,
    ATP_EVENT_LATE = 9,     /* its aggregator was released before: forwarded */
    ATP_EVENT_RESENT = 10,  /* a resend that found nothing to fetch: forwarded */
    ATP_EVENT_FETCHED = 11, /* a resend that fetched the partial sum */
    ATP_EVENT_RELEASED = 12,
    ATP_EVENT_EXPIRED = 13,    /* a release of another fragment freed an abandoned aggregator */
    ATP_EVENT_TAKEN_OVER = 14, /* claimed an abandoned aggregator of another fragment */
    ATP_EVENT_SUPERSEDED = 15, /* claimed the aggregator of a finished fragment whose ACK was lost */
    ATP_EVENT_FLUSHED = 16,
    ATP_EVENT_CLOSED = 17, /* a FLUSH or NACK met a free aggregator: late packets will be forwarded */
    ATP_EVENT_MISFIT = 18, /* cannot be added safely (level, kind of lanes, bitmap): forwarded to the server */
};
#define ATP_EVENT_COUNT 19

struct atp_decision {
    uint8_t packet;
    uint8_t lanes;
    uint8_t event;
};

static inline struct atp_decision atp_decision_of(uint8_t packet, uint8_t lanes, uint8_t event) {
    struct atp_decision decision;
    decision.packet = packet;
    decision.lanes = lanes;
    decision.event = event;
    return decision;
}

static inline int atp_same_stream(const struct atp_header* packet, const struct atp_aggregator* aggregator) {
    return packet->job == aggregator->job && (packet->token == aggregator->token || ATP_BREAK(ignore_token)) &&
           packet->channel == aggregator->channel;
}

static inline int atp_same_fragment(const struct atp_header* packet, const struct atp_aggregator* aggregator) {
    return atp_same_stream(packet, aggregator) && (packet->seq == aggregator->seq || ATP_BREAK(ignore_sequence));
}

/* The sender of seq has the result of seq - W, so a fragment that old is finished (H9, docs/spec/hazards.md#h9). */
static inline int atp_supersedes(const struct atp_header* packet, const struct atp_aggregator* aggregator) {
    int32_t ahead = (int32_t)(packet->seq - aggregator->seq);
    if (!atp_same_stream(packet, aggregator) || ATP_BREAK(never_supersede)) return 0;
    if (ATP_BREAK(supersede_too_early)) return ahead > 0;
    return ahead >= (int32_t)(1u << (packet->window_log2 & 31u));
}

static inline int atp_abandoned(const struct atp_aggregator* aggregator, uint32_t now_us, uint32_t ageing_us) {
    int32_t idle_us = (int32_t)(now_us - aggregator->touched_us);
    return idle_us > 0 && (uint32_t)idle_us > ageing_us;
}

/*
 * Frees the aggregator and keeps its tombstone: nothing of that fragment may gather here again (H1, H2, H7,
 * docs/spec/hazards.md#h1).
 */
static inline void atp_release(struct atp_aggregator* aggregator) {
    aggregator->status = ATP_AGGREGATOR_FREE;
    if (ATP_BREAK(claim_after_release)) aggregator->token = 0;
}

static inline void atp_remember(const struct atp_header* packet, struct atp_aggregator* aggregator) {
    aggregator->job = packet->job;
    aggregator->token = packet->token;
    aggregator->seq = packet->seq;
    aggregator->channel = packet->channel;
}

/* Forwards to the server, past the next level, which must never add a set that is not a whole unit. */
static inline struct atp_decision atp_forward_alone(struct atp_header* packet, uint8_t event) {
    packet->flags = (uint16_t)(packet->flags | ATP_FLAG_BYPASS);
    packet->hop = (uint8_t)(packet->hop + 1);
    return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, event);
}

static inline struct atp_decision atp_collide(struct atp_header* packet) {
    packet->flags = (uint16_t)(packet->flags | ATP_FLAG_COLLISION);
    if (ATP_BREAK(collision_not_bypass)) {
        packet->hop = (uint8_t)(packet->hop + 1);
        return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_COLLIDED);
    }
    return atp_forward_alone(packet, ATP_EVENT_COLLIDED);
}

/* The unit whose members the packet names. At hop 1 the members are units, so the function returns 0. */
static inline uint32_t atp_unit_of(const struct atp_header* packet) { return packet->hop == 0 ? packet->bitmap1 : 0u; }

/* Low 16 bits of the argument: docs/spec/packet.md#argument-of-a-gradient. */
static inline uint16_t atp_purpose_of(const struct atp_header* packet) { return (uint16_t)packet->argument; }

static inline uint32_t atp_contribution(const struct atp_header* packet) {
    return packet->hop == 0 ? packet->bitmap0 : packet->bitmap1;
}

static inline uint32_t atp_level_mask(const struct atp_header* packet) {
    return packet->hop == 0 ? packet->mask0 : packet->mask1;
}

/*
 * True if the packet may be added at its level. At hop 1 only whole units may: one bit cannot represent part of a
 * unit.
 */
static inline int atp_fits_level(const struct atp_header* packet) {
    if (packet->hop == 0) return packet->bitmap0 != 0;
    if (ATP_BREAK(collision_not_bypass)) return packet->bitmap1 != 0;
    return packet->bitmap1 != 0 && ((packet->flags & ATP_FLAG_WHOLE) || packet->bitmap0 == packet->mask0);
}

/* Places by which the bits of a packet are above those of an aggregator. */
#define ATP_ECN_DOWN_ABOVE 5
#define ATP_PROOF_ABOVE 9
ATP_STATIC_ASSERT(ATP_FLAG_ECN_DOWN >> ATP_ECN_DOWN_ABOVE == ATP_AGGREGATOR_ECN_DOWN, "the mark has another place");
ATP_STATIC_ASSERT(ATP_FLAG_PROOF >> ATP_PROOF_ABOVE == ATP_AGGREGATOR_PROOF, "the flag has another place");

/* Marks and kind of a gradient, as an aggregator keeps them. Without branches: each gradient needs them. */
static inline uint8_t atp_aggregator_flags_of(const struct atp_header* packet) {
    unsigned flags = packet->flags & (unsigned)ATP_FLAGS_ALIKE;
    flags |= (packet->flags & (unsigned)ATP_FLAG_ECN_DOWN) >> ATP_ECN_DOWN_ABOVE;
    flags |= (packet->flags & (unsigned)ATP_FLAG_PROOF) >> ATP_PROOF_ABOVE;
    flags |= (packet->lanes == ATP_INT16_LANES) * (unsigned)ATP_AGGREGATOR_INT16;
    flags |= (packet->lanes == ATP_INT8_LANES) * (unsigned)ATP_AGGREGATOR_INT8;
    return (uint8_t)flags;
}

/* `which` of the aggregator's flags, as a packet carries them. */
static inline uint16_t atp_packet_flags_of(const struct atp_aggregator* aggregator, unsigned which) {
    unsigned held = aggregator->flags & which;
    unsigned flags = held & (unsigned)ATP_FLAGS_ALIKE;
    flags |= (held & (unsigned)ATP_AGGREGATOR_ECN_DOWN) << ATP_ECN_DOWN_ABOVE;
    flags |= (held & (unsigned)ATP_AGGREGATOR_PROOF) << ATP_PROOF_ABOVE;
    return (uint16_t)flags;
}

/* `lanes` of a packet that carries the aggregator's sum. */
static inline uint8_t atp_lanes_held(const struct atp_aggregator* aggregator) {
    if (aggregator->flags & ATP_AGGREGATOR_INT8) return ATP_INT8_LANES;
    return (aggregator->flags & ATP_AGGREGATOR_INT16) ? ATP_INT16_LANES : ATP_INT32_LANES;
}

/* Words of another type than the form of the fragment travel alone: floats, and values that do not fit the form. */
static inline int atp_has_own_form(const struct atp_header* packet) {
    return atp_lanes_type(packet) == atp_lanes_form(packet);
}

/*
 * For a packet of the same fragment: true if level, unit and kind of lanes are equal, so that adding is meaningful.
 * The bitmap of the aggregator must also be within the packet's mask, so that the packet can carry the sum.
 */
static inline int atp_same_shape(const struct atp_header* packet, uint16_t lanes,
                                 const struct atp_aggregator* aggregator) {
    return aggregator->unit == atp_unit_of(packet) && aggregator->lanes == lanes &&
           (aggregator->purpose == atp_purpose_of(packet) || ATP_BREAK(mix_purposes)) &&
           ((aggregator->flags ^ atp_aggregator_flags_of(packet)) & ATP_AGGREGATOR_KIND) == 0 &&
           (aggregator->bitmap & ~atp_level_mask(packet)) == 0;
}

static inline struct atp_decision atp_claim(struct atp_header* packet, uint16_t lanes,
                                            struct atp_aggregator* aggregator, uint32_t now_us, uint8_t event) {
    atp_remember(packet, aggregator);
    aggregator->status = ATP_AGGREGATOR_GATHERING;
    aggregator->unit = atp_unit_of(packet);
    aggregator->bitmap = atp_contribution(packet);
    aggregator->lanes = lanes;
    aggregator->purpose = atp_purpose_of(packet);
    aggregator->flags = atp_aggregator_flags_of(packet);
    aggregator->touched_us = now_us;
    return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_STORE, event);
}

/* Writes the set and the flags of the aggregator to the packet, which will carry the aggregator's sum. */
static inline void atp_load(struct atp_header* packet, const struct atp_aggregator* aggregator) {
    packet->flags = (uint16_t)(packet->flags | atp_packet_flags_of(aggregator, ATP_AGGREGATOR_MARKS));
    if (ATP_BREAK(overflow_not_sticky)) packet->flags = (uint16_t)(packet->flags & ~(unsigned)ATP_FLAG_OVERFLOW);
    if (packet->hop == 0) {
        packet->bitmap0 = aggregator->bitmap;
    } else {
        packet->bitmap1 = aggregator->bitmap;
        packet->flags = (uint16_t)(packet->flags | ATP_FLAG_WHOLE);
    }
    packet->hop = (uint8_t)(packet->hop + 1);
}

static inline void atp_merge_flags(const struct atp_header* packet, unsigned which, struct atp_aggregator* aggregator) {
    if (ATP_BREAK(ecn_lost_in_switch)) which &= ~(unsigned)ATP_AGGREGATOR_ECN;
    aggregator->flags = (uint8_t)(aggregator->flags | (atp_aggregator_flags_of(packet) & which));
}

/* The usual case: the same fragment, level and shape. */
static inline struct atp_decision atp_gather(struct atp_header* packet, struct atp_aggregator* aggregator,
                                             uint32_t now_us) {
    uint32_t mine = atp_contribution(packet);
    uint32_t mask = atp_level_mask(packet);
    if ((aggregator->bitmap & mine) == mine && !ATP_BREAK(ignore_bitmap)) {
        atp_merge_flags(packet, ATP_AGGREGATOR_ECN | ATP_AGGREGATOR_ECN_DOWN, aggregator);
        if (aggregator->status != ATP_AGGREGATOR_COMPLETE)
            return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_DUPLICATE);
        atp_load(packet, aggregator);
        return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_EMIT, ATP_EVENT_REEMITTED);
    }
    if ((aggregator->bitmap & mine) != 0 && !ATP_BREAK(ignore_bitmap))
        return atp_forward_alone(packet, ATP_EVENT_MISFIT);

    aggregator->bitmap |= mine;
    aggregator->touched_us = now_us;
    atp_merge_flags(packet, ATP_AGGREGATOR_MARKS, aggregator);
    if (ATP_BREAK(complete_early) && (mask & ~aggregator->bitmap & ((mask & ~aggregator->bitmap) - 1u)) == 0)
        aggregator->bitmap = mask;
    if (aggregator->bitmap != mask) return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_ADD, ATP_EVENT_ADDED);

    aggregator->status = ATP_AGGREGATOR_COMPLETE;
    atp_load(packet, aggregator);
    return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_ADD_EMIT, ATP_EVENT_COMPLETED);
}

/*
 * A resend never claims. At level 0 it takes the partial sum with it, so that all of it reaches the server. At level
 * 1 the switch forwards the resend and keeps its partial sum: one bit per unit cannot represent part of a unit. The
 * server fetches that partial sum with a FLUSH.
 */
static inline struct atp_decision atp_resend(struct atp_header* packet, uint16_t lanes,
                                             struct atp_aggregator* aggregator) {
    uint32_t mine = atp_contribution(packet);
    uint8_t lanes_action;
    if (!atp_same_fragment(packet, aggregator) || aggregator->status == ATP_AGGREGATOR_FREE || packet->hop != 0 ||
        !atp_same_shape(packet, lanes, aggregator)) {
        /* Later packets must follow the resend to the server. Here they would wait for a packet that has passed. */
        if (aggregator->status == ATP_AGGREGATOR_FREE) atp_remember(packet, aggregator);
        packet->hop = (uint8_t)(packet->hop + 1);
        return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RESENT);
    }
    if ((aggregator->bitmap & mine) != 0 && (aggregator->bitmap & mine) != mine)
        return atp_forward_alone(packet, ATP_EVENT_MISFIT);
    lanes_action = (aggregator->bitmap & mine) || ATP_BREAK(resend_drops_own) ? ATP_LANES_EMIT : ATP_LANES_ADD_EMIT;
    aggregator->bitmap |= mine;
    atp_merge_flags(packet, ATP_AGGREGATOR_MARKS, aggregator);
    atp_load(packet, aggregator);
    if (!ATP_BREAK(resend_keeps_aggregator)) atp_release(aggregator);
    return atp_decision_of(ATP_PACKET_FORWARD, lanes_action, ATP_EVENT_FETCHED);
}

static inline struct atp_decision atp_decide_gradient(struct atp_header* packet, uint16_t lanes,
                                                      struct atp_aggregator* aggregator, uint32_t now_us,
                                                      uint32_t ageing_us) {
    uint8_t claim_event = ATP_EVENT_CLAIMED;
    if ((packet->flags & ATP_FLAG_BYPASS) || packet->hop >= ATP_LEVELS)
        return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_BYPASSED);
    if (!atp_has_own_form(packet)) return atp_forward_alone(packet, ATP_EVENT_MISFIT);
    if ((packet->flags & ATP_FLAG_RESEND) && !ATP_BREAK(resend_claims)) return atp_resend(packet, lanes, aggregator);
    if (!atp_fits_level(packet)) return atp_forward_alone(packet, ATP_EVENT_MISFIT);
    if (atp_contribution(packet) == atp_level_mask(packet)) {
        packet->hop = (uint8_t)(packet->hop + 1);
        return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_SINGLE);
    }

    if (aggregator->status == ATP_AGGREGATOR_FREE) {
        if (atp_same_fragment(packet, aggregator)) return atp_forward_alone(packet, ATP_EVENT_LATE);
    } else if (atp_same_fragment(packet, aggregator)) {
        if (!atp_same_shape(packet, lanes, aggregator)) return atp_forward_alone(packet, ATP_EVENT_MISFIT);
        return atp_gather(packet, aggregator, now_us);
    } else if (atp_supersedes(packet, aggregator)) {
        claim_event = ATP_EVENT_SUPERSEDED;
    } else if (atp_abandoned(aggregator, now_us, ageing_us)) {
        claim_event = ATP_EVENT_TAKEN_OVER;
    } else {
        return atp_collide(packet);
    }
    return atp_claim(packet, lanes, aggregator, now_us, claim_event);
}

/*
 * An ACK, or a NACK with BYPASS, releases the aggregator of seq. The NACK also closes a free aggregator: a worker
 * that has not sent yet does not know the NACK, and must not start a sum that cannot complete.
 */
static inline struct atp_decision atp_decide_release(const struct atp_header* packet, struct atp_aggregator* aggregator,
                                                     uint32_t now_us, uint32_t ageing_us) {
    uint8_t event = ATP_EVENT_PASSED;
    if (aggregator->status == ATP_AGGREGATOR_FREE) {
        if (packet->type == ATP_TYPE_NACK) {
            atp_remember(packet, aggregator);
            event = ATP_EVENT_CLOSED;
        }
    } else if (atp_same_fragment(packet, aggregator)) {
        atp_release(aggregator);
        event = ATP_EVENT_RELEASED;
    } else if (atp_abandoned(aggregator, now_us, ageing_us)) {
        atp_release(aggregator);
        event = ATP_EVENT_EXPIRED;
    }
    return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, event);
}

/* Returns the partial sum of seq and releases the aggregator. Late packets are then forwarded. */
static inline struct atp_decision atp_decide_flush(struct atp_header* packet, struct atp_aggregator* aggregator) {
    if (aggregator->status == ATP_AGGREGATOR_FREE) {
        atp_remember(packet, aggregator);
        return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_CLOSED);
    }
    if (!atp_same_fragment(packet, aggregator) || (packet->hop == 0 && packet->bitmap1 == 0) ||
        aggregator->unit != atp_unit_of(packet) || (aggregator->bitmap & ~atp_level_mask(packet)) != 0)
        return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_PASSED);
    packet->type = ATP_TYPE_GRADIENT;
    packet->lanes = atp_lanes_held(aggregator);
    packet->flags = (uint16_t)(ATP_FLAG_BYPASS | atp_packet_flags_of(aggregator, ATP_AGGREGATOR_KIND));
    if (ATP_BREAK(flush_forgets_plain)) packet->flags = (uint16_t)(packet->flags & ~(unsigned)ATP_FLAG_PLAIN);
    packet->worker = ATP_WORKER_ALL;
    packet->argument = aggregator->purpose;
    atp_load(packet, aggregator);
    if (ATP_BREAK(mark_lost_in_flush))
        packet->flags = (uint16_t)(packet->flags & ~(unsigned)(ATP_FLAG_ECN | ATP_FLAG_ECN_DOWN));
    if (!ATP_BREAK(flush_keeps_aggregator)) atp_release(aggregator);
    return atp_decision_of(ATP_PACKET_RETURN, ATP_LANES_EMIT, ATP_EVENT_FLUSHED);
}

/*
 * `lanes` is the number of lanes of the packet. `flush_here` is true on the switch that serves level packet->hop for
 * this job. Other switches only forward a FLUSH.
 */
static inline struct atp_decision atp_decide(struct atp_header* packet, uint16_t lanes, int flush_here,
                                             struct atp_aggregator* aggregator, uint32_t now_us, uint32_t ageing_us) {
    switch (packet->type) {
        case ATP_TYPE_GRADIENT: return atp_decide_gradient(packet, lanes, aggregator, now_us, ageing_us);
        case ATP_TYPE_ACK: return atp_decide_release(packet, aggregator, now_us, ageing_us);
        case ATP_TYPE_NACK:
            if (packet->flags & ATP_FLAG_BYPASS) return atp_decide_release(packet, aggregator, now_us, ageing_us);
            break;
        case ATP_TYPE_FLUSH:
            if (flush_here) return atp_decide_flush(packet, aggregator);
            break;
        default: break;
    }
    return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED);
}

/* An addition overflowed: sets the sticky flag of the aggregator, and the flag of a packet that leaves with the sum. */
static inline void atp_overflowed(struct atp_header* packet, struct atp_decision decision,
                                  struct atp_aggregator* aggregator) {
    aggregator->flags = (uint8_t)(aggregator->flags | ATP_FLAG_OVERFLOW);
    if (decision.lanes == ATP_LANES_ADD_EMIT) packet->flags = (uint16_t)(packet->flags | ATP_FLAG_OVERFLOW);
}

#ifdef __cplusplus
static_assert(sizeof(atp_aggregator) == 40, "no padding");
#pragma GCC diagnostic pop
#endif

#endif
