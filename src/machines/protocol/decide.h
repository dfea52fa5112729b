/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The switch's decision: one pure function of a packet's header, the small state of the one aggregator it names, and
 * the time. Freestanding C, no loop, no memory but its arguments: user space, the simulator, the model checker and eBPF
 * compile this very file. Moving lanes is each place's own business and is only ordered here.
 *
 * Calling order: atp_decide(); then carry out `lanes`; if an addition left 32 bits, atp_overflowed(); then carry out
 * `packet`. The caller owns the aggregator exclusively (one owner core, or one lock) from the first to the last of
 * them. Both arguments are rewritten in place: the header is then what leaves, the aggregator what stays.
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
    ATP_AGGREGATOR_FREE = 0,      /* nobody's; still remembers the last id: its latecomers are forwarded (tombstone) */
    ATP_AGGREGATOR_GATHERING = 1, /* holds the sum of `bitmap` */
    ATP_AGGREGATOR_COMPLETE = 2,  /* emitted; kept until the ACK, so that a loss costs one packet */
};

/* All zero is a free aggregator that remembers nobody: token 0 belongs to no job. */
struct atp_aggregator {
    uint32_t job;
    uint32_t token;
    uint32_t seq;
    uint16_t channel;
    uint8_t status;
    uint8_t flags; /* ECN, OVERFLOW and what the lanes are (AUDIT, PLAIN, ATP_AGGREGATOR_INT16) of what was added */
    uint32_t bitmap;
    uint16_t lanes;   /* how many are in use: a packet with another number never mixes in */
    uint16_t purpose; /* nor does one of another purpose */
    uint32_t unit; /* level 0: the unit it gathers for, as in bitmap1: racks never mix even where one switch sees two.
                      Level 1: 0, so that the levels never mix either */
    uint32_t touched_us; /* wraps after 71 minutes: what idles longer than half of that may look young once more */
};

enum atp_packet_action {
    ATP_PACKET_DROP = 0,    /* absorbed */
    ATP_PACKET_FORWARD = 1, /* onward in its own direction */
    ATP_PACKET_RETURN = 2,  /* turned into a gradient: back to where the server is */
};

enum atp_lanes_action {
    ATP_LANES_NONE = 0,
    ATP_LANES_STORE = 1,    /* packet -> aggregator */
    ATP_LANES_ADD = 2,      /* packet added into aggregator */
    ATP_LANES_ADD_EMIT = 3, /* packet added into aggregator, the sum into the packet */
    ATP_LANES_EMIT = 4,     /* aggregator -> packet; on RETURN the packet grows by `lanes` of the aggregator */
};

/* What the lanes are, and no property of their values: gradients that differ in it never mix. */
#define ATP_FLAGS_OF_LANES (ATP_FLAG_AUDIT | ATP_FLAG_PLAIN)
/* Among the flags of an aggregator, in the place of one that it never keeps: its lanes hold two numbers each. */
#define ATP_AGGREGATOR_INT16 ATP_FLAG_RESEND

/* What happened, for counters and traces. */
enum atp_switch_event {
    ATP_EVENT_PASSED = 0, /* nothing to do here: probes, waits, other levels, releases of others */
    ATP_EVENT_CLAIMED = 1,
    ATP_EVENT_ADDED = 2,
    ATP_EVENT_COMPLETED = 3,
    ATP_EVENT_SINGLE = 4,    /* the only contributor of its level: forwarded as complete, nothing held */
    ATP_EVENT_DUPLICATE = 5, /* already in, absorbed */
    ATP_EVENT_REEMITTED = 6, /* already in and complete: the result leaves again */
    ATP_EVENT_COLLIDED = 7,
    ATP_EVENT_BYPASSED = 8,
    ATP_EVENT_LATE = 9,     /* its aggregator was released before: forwarded */
    ATP_EVENT_RESENT = 10,  /* a resend that met nothing of its own */
    ATP_EVENT_FETCHED = 11, /* a resend that took the partial sum along */
    ATP_EVENT_RELEASED = 12,
    ATP_EVENT_EXPIRED = 13,    /* an abandoned aggregator of another was freed by a passing release */
    ATP_EVENT_TAKEN_OVER = 14, /* claimed from an abandoned other */
    ATP_EVENT_SUPERSEDED = 15, /* claimed from a finished predecessor whose ACK was lost */
    ATP_EVENT_FLUSHED = 16,
    ATP_EVENT_CLOSED = 17, /* a flush found nothing: latecomers will be forwarded */
    ATP_EVENT_MISFIT = 18, /* cannot be added safely (level, kind of lanes, set): forwarded to the server */
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

/* Whoever sends seq has the result of seq - W: an aggregator that old was finished long ago (hazard 9). */
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

/* Frees it and remembers whom it served: nothing of that fragment may gather here again (hazards 1, 2, 7). */
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

/* To the server, untouched by the next level: a set that is not all of its unit must never be added there. */
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

/* Which unit's members a packet speaks of; at hop 1 units themselves are the members. */
static inline uint32_t atp_unit_of(const struct atp_header* packet) { return packet->hop == 0 ? packet->bitmap1 : 0u; }

/* What the fragment is part of, as far as 16 bits tell; see docs/protocol.md. */
static inline uint16_t atp_purpose_of(const struct atp_header* packet) { return (uint16_t)packet->argument; }

static inline uint32_t atp_contribution(const struct atp_header* packet) {
    return packet->hop == 0 ? packet->bitmap0 : packet->bitmap1;
}

static inline uint32_t atp_level_mask(const struct atp_header* packet) {
    return packet->hop == 0 ? packet->mask0 : packet->mask1;
}

/* Whether it may be added at its level at all. At hop 1 only whole units may: one bit cannot tell half a unit. */
static inline int atp_fits_level(const struct atp_header* packet) {
    if (packet->hop == 0) return packet->bitmap0 != 0;
    if (ATP_BREAK(collision_not_bypass)) return packet->bitmap1 != 0;
    return packet->bitmap1 != 0 && ((packet->flags & ATP_FLAG_WHOLE) || packet->bitmap0 == packet->mask0);
}

static inline uint8_t atp_kind_of_lanes(const struct atp_header* packet) {
    unsigned kind = packet->flags & (unsigned)ATP_FLAGS_OF_LANES;
    if (packet->dtype == ATP_DTYPE_INT16) kind |= (unsigned)ATP_AGGREGATOR_INT16;
    return (uint8_t)kind;
}

/*
 * Beyond the same fragment: the same level, unit and kind of lanes, so that adding is meaningful; and whatever is held
 * is within the packet's mask, so that the packet can carry it away.
 */
static inline int atp_same_shape(const struct atp_header* packet, uint16_t lanes,
                                 const struct atp_aggregator* aggregator) {
    return aggregator->unit == atp_unit_of(packet) && aggregator->lanes == lanes &&
           (aggregator->purpose == atp_purpose_of(packet) || ATP_BREAK(mix_purposes)) &&
           ((aggregator->flags ^ atp_kind_of_lanes(packet)) & (ATP_FLAGS_OF_LANES | ATP_AGGREGATOR_INT16)) == 0 &&
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
    aggregator->flags = (uint8_t)((packet->flags & (ATP_FLAG_ECN | ATP_FLAG_OVERFLOW)) | atp_kind_of_lanes(packet));
    aggregator->touched_us = now_us;
    return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_STORE, event);
}

/* The packet becomes the carrier of what the aggregator holds. */
static inline void atp_load(struct atp_header* packet, const struct atp_aggregator* aggregator) {
    packet->flags = (uint16_t)(packet->flags | (aggregator->flags & (ATP_FLAG_ECN | ATP_FLAG_OVERFLOW)));
    if (ATP_BREAK(overflow_not_sticky)) packet->flags = (uint16_t)(packet->flags & ~(unsigned)ATP_FLAG_OVERFLOW);
    if (packet->hop == 0) {
        packet->bitmap0 = aggregator->bitmap;
    } else {
        packet->bitmap1 = aggregator->bitmap;
        packet->flags = (uint16_t)(packet->flags | ATP_FLAG_WHOLE);
    }
    packet->hop = (uint8_t)(packet->hop + 1);
}

static inline void atp_merge_flags(const struct atp_header* packet, uint16_t which, struct atp_aggregator* aggregator) {
    if (ATP_BREAK(ecn_lost_in_switch)) which = (uint16_t)(which & ~(unsigned)ATP_FLAG_ECN);
    aggregator->flags = (uint8_t)(aggregator->flags | (packet->flags & which));
}

/* Same fragment, same level, same shape: the usual case. */
static inline struct atp_decision atp_gather(struct atp_header* packet, struct atp_aggregator* aggregator,
                                             uint32_t now_us) {
    uint32_t mine = atp_contribution(packet);
    uint32_t mask = atp_level_mask(packet);
    if ((aggregator->bitmap & mine) == mine && !ATP_BREAK(ignore_bitmap)) {
        atp_merge_flags(packet, ATP_FLAG_ECN, aggregator);
        if (aggregator->status != ATP_AGGREGATOR_COMPLETE)
            return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_DUPLICATE);
        atp_load(packet, aggregator);
        return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_EMIT, ATP_EVENT_REEMITTED);
    }
    if ((aggregator->bitmap & mine) != 0 && !ATP_BREAK(ignore_bitmap))
        return atp_forward_alone(packet, ATP_EVENT_MISFIT);

    aggregator->bitmap |= mine;
    aggregator->touched_us = now_us;
    atp_merge_flags(packet, ATP_FLAG_ECN | ATP_FLAG_OVERFLOW, aggregator);
    if (ATP_BREAK(complete_early) && (mask & ~aggregator->bitmap & ((mask & ~aggregator->bitmap) - 1u)) == 0)
        aggregator->bitmap = mask;
    if (aggregator->bitmap != mask) return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_ADD, ATP_EVENT_ADDED);

    aggregator->status = ATP_AGGREGATOR_COMPLETE;
    atp_load(packet, aggregator);
    return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_ADD_EMIT, ATP_EVENT_COMPLETED);
}

/*
 * A resend never claims. Level 0 hands it what is held, so that all of it reaches the server; level 1 lets it pass
 * and keeps what it holds: one bit a unit cannot be merged with half a unit, and the server fetches it with a FLUSH.
 */
static inline struct atp_decision atp_resend(struct atp_header* packet, uint16_t lanes,
                                             struct atp_aggregator* aggregator) {
    uint32_t mine = atp_contribution(packet);
    uint8_t lanes_action;
    if (!atp_same_fragment(packet, aggregator) || aggregator->status == ATP_AGGREGATOR_FREE || packet->hop != 0 ||
        !atp_same_shape(packet, lanes, aggregator)) {
        /* Whoever comes later shall follow it to the server rather than wait here for what has passed. */
        if (aggregator->status == ATP_AGGREGATOR_FREE) atp_remember(packet, aggregator);
        packet->hop = (uint8_t)(packet->hop + 1);
        return atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RESENT);
    }
    if ((aggregator->bitmap & mine) != 0 && (aggregator->bitmap & mine) != mine)
        return atp_forward_alone(packet, ATP_EVENT_MISFIT);
    lanes_action = (aggregator->bitmap & mine) || ATP_BREAK(resend_drops_own) ? ATP_LANES_EMIT : ATP_LANES_ADD_EMIT;
    aggregator->bitmap |= mine;
    atp_merge_flags(packet, ATP_FLAG_ECN | ATP_FLAG_OVERFLOW, aggregator);
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
    if (packet->dtype == ATP_DTYPE_FLOAT32) return atp_forward_alone(packet, ATP_EVENT_MISFIT);
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
 * ACKs, and the request to send again without aggregation, mean that nobody needs the aggregator of seq any more. The
 * request also closes a free one: who has not sent yet does not know of it, and must not start to gather what cannot be
 * complete.
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

/* "Stop holding seq at your level, and give me what you have": latecomers then follow by themselves. */
static inline struct atp_decision atp_decide_flush(struct atp_header* packet, struct atp_aggregator* aggregator) {
    if (aggregator->status == ATP_AGGREGATOR_FREE) {
        atp_remember(packet, aggregator);
        return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_CLOSED);
    }
    if (!atp_same_fragment(packet, aggregator) || (packet->hop == 0 && packet->bitmap1 == 0) ||
        aggregator->unit != atp_unit_of(packet) || (aggregator->bitmap & ~atp_level_mask(packet)) != 0)
        return atp_decision_of(ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_PASSED);
    packet->type = ATP_TYPE_GRADIENT;
    packet->dtype = (aggregator->flags & ATP_AGGREGATOR_INT16) ? ATP_DTYPE_INT16 : ATP_DTYPE_INT32;
    packet->flags = (uint16_t)(ATP_FLAG_BYPASS | (aggregator->flags & ATP_FLAGS_OF_LANES));
    if (ATP_BREAK(flush_forgets_plain)) packet->flags = (uint16_t)(packet->flags & ~(unsigned)ATP_FLAG_PLAIN);
    packet->worker = ATP_WORKER_ALL;
    packet->argument = aggregator->purpose;
    atp_load(packet, aggregator);
    if (!ATP_BREAK(flush_keeps_aggregator)) atp_release(aggregator);
    return atp_decision_of(ATP_PACKET_RETURN, ATP_LANES_EMIT, ATP_EVENT_FLUSHED);
}

/*
 * `lanes` is the number of lanes of the packet. `flush_here` is true on the switch that serves level packet->hop for
 * this job; elsewhere a FLUSH only passes.
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

/* An addition left 32 bits: sticky where it stays, and marked on what leaves. */
static inline void atp_overflowed(struct atp_header* packet, struct atp_decision decision,
                                  struct atp_aggregator* aggregator) {
    aggregator->flags = (uint8_t)(aggregator->flags | ATP_FLAG_OVERFLOW);
    if (decision.lanes == ATP_LANES_ADD_EMIT) packet->flags = (uint16_t)(packet->flags | ATP_FLAG_OVERFLOW);
}

#ifdef __cplusplus
static_assert(sizeof(atp_aggregator) == 32, "two aggregators a cache line");
#pragma GCC diagnostic pop
#endif

#endif
