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
    /* unknown lanes, or lanes that do not fit the type or the presence of words */
    ATP_REFUSED_LANES = 7,
    /* PROOF with AUDIT, or with words that have no room for proof words */
    ATP_REFUSED_PROOF = 8,
    /* more hops than levels */
    ATP_REFUSED_HOP = 9,
    /* window_log2 out of range */
    ATP_REFUSED_WINDOW = 10,
    /* token 0, which no job has */
    ATP_REFUSED_TOKEN = 11,
    /* bitmap outside its mask, or a gradient without workers */
    ATP_REFUSED_SET = 12,
    /* a part that the packet cannot have */
    ATP_REFUSED_PART = 13,
};
#define ATP_REFUSAL_COUNT 14
/* End of the written part. */

/* Checks a datagram of at least a header. `bytes` is its length, header included. */
static inline uint8_t atp_check_bytes(uint8_t version, uint64_t bytes) {
    if (version != ATP_VERSION) return ATP_REFUSED_VERSION;
    if (bytes > ATP_MAX_PACKET_BYTES) return ATP_REFUSED_OVERSIZED;
    if (bytes % ATP_LANE_BYTES != 0) return ATP_REFUSED_RAGGED;
    return ATP_REFUSED_NOT;
}

/* Words are of the form itself, or of a wider type. The numbers of the integer types grow as the types get narrower. */
static inline int atp_is_typed(const struct atp_header* header) {
    uint8_t form = atp_lanes_form(header);
    uint8_t type = atp_lanes_type(header);
    int has_form = form == ATP_DTYPE_INT32 || form == ATP_DTYPE_INT16 || form == ATP_DTYPE_INT8;
    return has_form && type != ATP_DTYPE_NONE && (type == ATP_DTYPE_FLOAT32 || type <= form);
}

/* The words of an ACK_LIST: at least one further ACK. */
static inline int atp_lists_acks(uint32_t words) {
    return words != 0 && words % ATP_LISTED_ACK_LANES == 0 && words <= ATP_MAX_ACK_LIST_LANES;
}

/*
 * A GRADIENT or an ACK has words and names their form and type; an ACK may lack both. A NACK has no words and names the
 * type that it requests. Other packets have neither, except that the words of a PROBE are padding, and those of an
 * ACK_LIST further ACKs. `words`: their number behind the header.
 */
static inline int atp_lanes_fit(const struct atp_header* header, uint32_t words) {
    switch (header->type) {
        case ATP_TYPE_GRADIENT: return atp_is_typed(header) && words != 0;
        case ATP_TYPE_ACK: return words != 0 ? atp_is_typed(header) : header->lanes == 0;
        case ATP_TYPE_NACK: return header->lanes != ATP_DTYPE_NONE && header->lanes <= ATP_DTYPE_LAST && words == 0;
        case ATP_TYPE_PROBE: return header->lanes == 0;
        case ATP_TYPE_ACK_LIST: return header->lanes == 0 && atp_lists_acks(words);
        default: return header->lanes == 0 && words == 0;
    }
}

/* True if the last words of the packet are proof words. */
static inline int atp_has_proof(const struct atp_header* header) {
    return (header->flags & ATP_FLAG_PROOF) != 0 && atp_lanes_form(header) != 0;
}

/* Proof words follow integers, at least one word of them, and leave no place for an audit lane. */
static inline int atp_proof_fits(const struct atp_header* header, uint32_t words) {
    if ((header->flags & ATP_FLAG_PROOF) == 0) return 1;
    if ((header->flags & ATP_FLAG_AUDIT) != 0) return 0;
    return !atp_has_proof(header) || (atp_lanes_type(header) != ATP_DTYPE_FLOAT32 && words > ATP_PROOF_LANES);
}

/* A part never meets an aggregator, and a result is never a part of a member. */
static inline int atp_part_fits(const struct atp_header* header) {
    uint32_t packets;
    if (header->part == 0 || header->type == ATP_TYPE_NACK) return 1;
    if (header->type == ATP_TYPE_GRADIENT && (header->flags & ATP_FLAG_BYPASS) == 0) return 0;
    if (header->type == ATP_TYPE_ACK && atp_part_rank(header) != 0) return 0;
    if (header->type != ATP_TYPE_GRADIENT && header->type != ATP_TYPE_ACK) return 0;
    packets = atp_elements_per_word(atp_lanes_form(header)) / atp_elements_per_word(atp_lanes_type(header));
    return atp_part_packet(header) < packets;
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
static inline uint8_t atp_check_header(const struct atp_header* header, uint32_t words) {
    if (header->type < ATP_TYPE_GRADIENT || header->type > ATP_TYPE_LAST) return ATP_REFUSED_TYPE;
    if ((header->flags & ~ATP_FLAG_ALL) != 0) return ATP_REFUSED_FLAGS;
    if (!atp_lanes_fit(header, words)) return ATP_REFUSED_LANES;
    if (!atp_proof_fits(header, words)) return ATP_REFUSED_PROOF;
    if (header->hop > ATP_LEVELS) return ATP_REFUSED_HOP;
    if (header->window_log2 > ATP_WINDOW_LOG2_MAX) return ATP_REFUSED_WINDOW;
    if (header->token == 0) return ATP_REFUSED_TOKEN;
    if (!atp_set_fits(header)) return ATP_REFUSED_SET;
    if (!atp_part_fits(header)) return ATP_REFUSED_PART;
    return ATP_REFUSED_NOT;
}
/* End of the written part. */

#endif
