/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The part of a switch's table that a job may use. The entry of the job has it: a packet names an index, and the entry
 * decides which aggregator that is, so no job reaches an aggregator of another tenant (docs/spec/switch.md#slices).
 * Freestanding C, as decide.h.
 *
 * A slice changes while packets of the job are on their way. A fragment must not get one aggregator before the change
 * and another after it: each would wait for the members that the other has. So a change applies from the highest
 * sequence number that passed, plus the window, since no packet beyond that has been sent. Older fragments find their
 * aggregators in the range of before. Who changes the entry ends the change a while later, because otherwise a job that
 * sends no newer fragments would keep what it has to return.
 *
 * Ownership: the caller owns the entry during a call.
 */
#ifndef ATP_PROTOCOL_SLICE_H
#define ATP_PROTOCOL_SLICE_H

#include "protocol/breaks.h"
#include "wire/format.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

/* Aggregators base to base + size - 1. Size 0: none. */
struct atp_range {
    uint32_t base;
    uint32_t size;
};

/* Streams of a job with numbers of their own. Channels beyond that share one, so their changes apply later. */
#define ATP_SLICE_STREAMS 8u

struct atp_slice {
    struct atp_range now;
    struct atp_range before;           /* during a change: of older fragments; otherwise size 0 */
    uint32_t from[ATP_SLICE_STREAMS];  /* during a change, by stream: the first fragment in `now` */
    uint32_t reach[ATP_SLICE_STREAMS]; /* by stream: the highest seq that passed, plus W */
    uint8_t passed;                    /* streams of which packets passed, as bits */
    uint8_t has_from;                  /* streams with older fragments */
    uint8_t is_shared;                 /* other tenants have other parts of the table. 0: `now` is all of it, always */
    uint8_t window_log2;               /* the largest that passed */
    uint32_t weight; /* of its tenant against others, for links. The table does not read it: `now` follows from it */
};
ATP_STATIC_ASSERT(sizeof(struct atp_slice) == 88u, "no padding");

static inline uint32_t atp_slice_stream(const struct atp_header* packet) {
    return packet->channel & (ATP_SLICE_STREAMS - 1u);
}

/* These may claim or free an aggregator. Only they show how far a stream is. */
static inline int atp_reaches_aggregator(const struct atp_header* packet) {
    return packet->type == ATP_TYPE_GRADIENT || packet->type == ATP_TYPE_ACK || packet->type == ATP_TYPE_NACK ||
           packet->type == ATP_TYPE_FLUSH;
}

static inline uint32_t atp_slice_reach_of(const struct atp_header* packet) {
    return packet->seq + (1u << (packet->window_log2 & 31u));
}

/* True for a packet that shows that its stream is further than any before it did. */
static inline int atp_slice_advances(const struct atp_slice* slice, const struct atp_header* packet) {
    uint32_t stream = atp_slice_stream(packet);
    return atp_reaches_aggregator(packet) &&
           (!(slice->passed >> stream & 1u) || (int32_t)(atp_slice_reach_of(packet) - slice->reach[stream]) > 0);
}

static inline struct atp_range atp_range_of(const struct atp_slice* slice, const struct atp_header* packet) {
    uint32_t stream = atp_slice_stream(packet);
    int is_older = (slice->has_from >> stream & 1u) != 0 && (int32_t)(packet->seq - slice->from[stream]) < 0;
    return is_older && !ATP_BREAK(change_slice_at_once) ? slice->before : slice->now;
}

/*
 * The aggregator of a packet whose index the table has, and the size of its range in `*size`. 0 there: it has none.
 * Notes that the packet passed.
 */
static inline uint32_t atp_slice_index(struct atp_slice* slice, const struct atp_header* packet, uint32_t* size) {
    struct atp_range range = slice->now;
    if (slice->is_shared) {
        uint32_t stream = atp_slice_stream(packet);
        range = atp_range_of(slice, packet);
        if (atp_slice_advances(slice, packet)) {
            slice->reach[stream] = atp_slice_reach_of(packet);
            slice->passed = (uint8_t)(slice->passed | 1u << stream);
            if (packet->window_log2 > slice->window_log2) slice->window_log2 = packet->window_log2;
        }
    }
    *size = range.size;
    if (ATP_BREAK(index_beyond_slice)) return packet->index;
    return range.base + (packet->index < range.size || range.size == 0 ? packet->index : packet->index % range.size);
}

/*
 * Begins a change. `margin`: windows that may pass while the entry is written. No change is under way: what a change
 * has not yet left would be lost.
 */
static inline void atp_slice_change(struct atp_slice* slice, struct atp_range next, uint32_t margin) {
    uint32_t stream;
    slice->before = slice->now;
    slice->now = next;
    slice->has_from = slice->before.size != 0 ? slice->passed : 0;
    for (stream = 0; stream < ATP_SLICE_STREAMS; ++stream)
        slice->from[stream] = slice->reach[stream] + (margin << (slice->window_log2 & 31u));
}

/*
 * The first call gives the job its slice, at once. A later one with another range begins a change with this margin, and
 * returns 1.
 */
static inline int atp_slice_set(struct atp_slice* slice, struct atp_range range, uint32_t weight, uint32_t margin) {
    int is_first = !slice->is_shared;
    slice->weight = weight;
    slice->is_shared = 1;
    if (is_first) slice->now = range;
    if (slice->now.base == range.base && slice->now.size == range.size) return 0;
    atp_slice_change(slice, range, margin);
    return 1;
}

static inline void atp_slice_end_change(struct atp_slice* slice) {
    slice->before.base = slice->before.size = 0;
    slice->has_from = 0;
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
