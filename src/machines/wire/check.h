/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Rules that decide whether a packet is valid, in the order of their checks. Freestanding C, so that user space and
 * eBPF accept and refuse the same packets.
 */
#ifndef ATP_WIRE_CHECK_H
#define ATP_WIRE_CHECK_H

#include "wire/format.h"

/* The first rule that a packet breaks selects the counter of the packet. */
/* tools/write_wire writes the refusals from src/machines/wire/wire.toml. */
enum atp_refusal {
    ATP_REFUSED_NOT = 0,
    /* shorter than a header */
    ATP_REFUSED_TRUNCATED = 1,
    /* not ATP_VERSION; checked before the length, since another version may define lanes differently */
    ATP_REFUSED_VERSION = 2,
    /* more than ATP_MAX_LANES lanes */
    ATP_REFUSED_OVERSIZED = 3,
    /* length of the lanes is not a multiple of 4 bytes */
    ATP_REFUSED_RAGGED = 4,
    /* unknown type */
    ATP_REFUSED_TYPE = 5,
    /* unknown flag */
    ATP_REFUSED_FLAGS = 6,
    /* unknown dtype, or one that does not fit the type or the presence of lanes */
    ATP_REFUSED_DTYPE = 7,
    /* more hops than levels */
    ATP_REFUSED_HOP = 8,
    /* window_log2 out of range */
    ATP_REFUSED_WINDOW = 9,
    /* token 0, which no job has */
    ATP_REFUSED_TOKEN = 10,
    /* bitmap outside its mask, or a gradient without workers */
    ATP_REFUSED_SET = 11,
};
#define ATP_REFUSAL_COUNT 12
/* End of the written part. */

/* Checks a datagram of at least a header. `bytes` is its length, header included. */
static inline uint8_t atp_check_bytes(uint8_t version, uint64_t bytes) {
    if (version != ATP_VERSION) return ATP_REFUSED_VERSION;
    if (bytes > ATP_MAX_PACKET_BYTES) return ATP_REFUSED_OVERSIZED;
    if (bytes % ATP_LANE_BYTES != 0) return ATP_REFUSED_RAGGED;
    return ATP_REFUSED_NOT;
}

/*
 * A GRADIENT or an ACK has lanes and names their type. A NACK has no lanes and names the type that it requests, which
 * is never int16. Other packets have no lanes and no type.
 */
static inline int atp_dtype_fits(const struct atp_header* header, int has_lanes) {
    int numeric = header->dtype != ATP_DTYPE_NONE && header->dtype <= ATP_DTYPE_LAST;
    switch (header->type) {
        case ATP_TYPE_GRADIENT:
        case ATP_TYPE_ACK: return numeric && has_lanes;
        case ATP_TYPE_NACK: return numeric && header->dtype != ATP_DTYPE_INT16 && !has_lanes;
        default: return header->dtype == ATP_DTYPE_NONE && !has_lanes;
    }
}

/* A gradient covers whole units, or some members of exactly one unit: bitmap0 has bits for one unit only. */
static inline int atp_set_fits(const struct atp_header* header) {
    if (((header->bitmap0 & ~header->mask0) | (header->bitmap1 & ~header->mask1)) != 0) return 0;
    if (header->type != ATP_TYPE_GRADIENT) return 1;
    if ((header->flags & ATP_FLAG_WHOLE) != 0) return header->bitmap1 != 0;
    return header->bitmap0 != 0 && header->bitmap1 != 0 && (header->bitmap1 & (header->bitmap1 - 1)) == 0;
}

/* Checks a header behind atp_check_bytes(). */
/* tools/write_wire writes the order of checks from src/machines/wire/wire.toml. */
static inline uint8_t atp_check_header(const struct atp_header* header, int has_lanes) {
    if (header->type < ATP_TYPE_GRADIENT || header->type > ATP_TYPE_LAST) return ATP_REFUSED_TYPE;
    if ((header->flags & ~ATP_FLAG_ALL) != 0) return ATP_REFUSED_FLAGS;
    if (!atp_dtype_fits(header, has_lanes)) return ATP_REFUSED_DTYPE;
    if (header->hop > ATP_LEVELS) return ATP_REFUSED_HOP;
    if (header->window_log2 > ATP_WINDOW_LOG2_MAX) return ATP_REFUSED_WINDOW;
    if (header->token == 0) return ATP_REFUSED_TOKEN;
    if (!atp_set_fits(header)) return ATP_REFUSED_SET;
    return ATP_REFUSED_NOT;
}
/* End of the written part. */

#endif
