/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Registers of a pipeline that aggregates: see decide_pipeline.h. A *cell* is a register with its programs. A packet
 * may access each cell once while it passes. Each function atp_cell_... is one program of a cell, with as many
 * comparisons and updates as an arithmetic unit of Tofino has, and reports its access to the pass.
 */
#ifndef ATP_PROTOCOL_PIPELINE_CELLS_H
#define ATP_PROTOCOL_PIPELINE_CELLS_H

#include "protocol/decide.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

/*
 * Tag of an aggregator: its fragment, without the upper bits of seq, which `body` has. LEAVING: the fragment was taken
 * by a packet that has half of its lanes. No packet may add or claim until that packet has the other half.
 */
#define ATP_TAG_FREE 0x80000000u
#define ATP_TAG_LEAVING 0x40000000u
#define ATP_TAG_STREAM_SHIFT 23u
#define ATP_TAG_STREAMS 127u /* streams are numbered from 1 */
#define ATP_TAG_SEQ_MASK ((1u << ATP_TAG_STREAM_SHIFT) - 1u)

/*
 * Shape of an aggregator: `body` has the purpose, the upper bits of seq, the place, and three bits for PROOF, PLAIN and
 * AUDIT.
 */
#define ATP_BODY_PURPOSE_SHIFT 16u
#define ATP_BODY_SEQ_SHIFT 7u
#define ATP_BODY_PLACE_SHIFT 3u
#define ATP_BODY_PLACES 15u /* places are numbered from 1 */
#define ATP_BODY_PROOF 4u
#define ATP_BODY_PLAIN 2u
#define ATP_BODY_AUDIT 1u

/* An aggregator without its lanes. Its first state: all zero, but `tag` is ATP_TAG_FREE. */
struct atp_pipeline_words {
    uint32_t tomb;     /* tag of the fragment that was released last */
    uint32_t tomb_seq; /* seq of that fragment; `tomb` and `tomb_seq` are one register */
    uint32_t tag;
    uint32_t body;
    uint32_t bitmap; /* `body` and `bitmap` are one register. Complete is bitmap == mask */
    uint32_t touched_us;
    uint32_t marks; /* ECN, OVERFLOW and ECN_DOWN as in a packet */
};
#define ATP_PIPELINE_MARKS ((uint32_t)(ATP_FLAG_ECN | ATP_FLAG_OVERFLOW | ATP_FLAG_ECN_DOWN))

/*
 * What the tables of the control plane know about a packet. (job, token, channel) gives the stream. (stream, hop, unit)
 * gives place and mask; at hop 1 the unit is 0. 0: not admitted, or not served here.
 */
struct atp_pipeline_place {
    uint32_t stream;
    uint32_t place;
    uint32_t mask;
};

enum atp_pass_kind {
    ATP_PASS_FIRST = 0,
    ATP_PASS_CLAIM = 1,   /* gradient: claims if the tag is still `seen` */
    ATP_PASS_EXPIRE = 2,  /* release: frees if the tag is still `seen` */
    ATP_PASS_FETCH = 3,   /* resend or flush: takes the upper lanes */
    ATP_PASS_HARVEST = 4, /* the sum of a complete aggregator: takes the lower lanes */
    ATP_PASS_TAKE = 5,    /* the sum of a fetched aggregator: takes the lower lanes and frees */
    ATP_PASS_RETURN = 6,  /* TAKE for a flush: the packet turns around */
};

/* A pass of a packet. `kind` and `seen` come with the packet. */
struct atp_pass {
    uint8_t kind;  /* enum atp_pass_kind */
    uint32_t seen; /* CLAIM, EXPIRE: the tag that the first pass saw. FETCH of a flush: `body` */
    struct atp_pipeline_place place;
    uint32_t full_lanes; /* the only number of lanes that this pipeline adds */
    uint32_t now_us;
    uint32_t ageing_us;
    uint32_t accesses; /* result: number of accesses to each cell, four bits each, by enum atp_cell */
};

enum atp_cell { ATP_CELL_TOMB = 0, ATP_CELL_TAG = 1, ATP_CELL_BODY = 2, ATP_CELL_TIME = 3, ATP_CELL_MARK = 4 };
#define ATP_CELL_COUNT 5

static inline void atp_count_access(struct atp_pass* pass, uint32_t cell) { pass->accesses += 1u << (4u * cell); }

/* True if this fragment was released here last. */
static inline int atp_cell_tomb_is(struct atp_pass* pass, const struct atp_pipeline_words* words, uint32_t mine,
                                   uint32_t seq) {
    atp_count_access(pass, ATP_CELL_TOMB);
    return words->tomb == mine && words->tomb_seq == seq;
}

static inline void atp_cell_tomb_write(struct atp_pass* pass, struct atp_pipeline_words* words, uint32_t mine,
                                       uint32_t seq) {
    atp_count_access(pass, ATP_CELL_TOMB);
    words->tomb = mine;
    words->tomb_seq = seq;
}

/* Claims a free aggregator. Returns 0 if it is mine already, otherwise the tag before. No tag is 0. */
static inline uint32_t atp_cell_tag_claim(struct atp_pass* pass, struct atp_pipeline_words* words, uint32_t mine) {
    uint32_t before = words->tag;
    atp_count_access(pass, ATP_CELL_TAG);
    if (before & ATP_TAG_FREE) words->tag = mine;
    return before == mine ? 0u : before;
}

/* Returns the tag before. */
static inline uint32_t atp_cell_tag_swap(struct atp_pass* pass, struct atp_pipeline_words* words, uint32_t expected,
                                         uint32_t next) {
    uint32_t before = words->tag;
    atp_count_access(pass, ATP_CELL_TAG);
    if (before == expected) words->tag = next;
    return before;
}

static inline void atp_cell_body_write(struct atp_pass* pass, struct atp_pipeline_words* words, uint32_t body,
                                       uint32_t bitmap) {
    atp_count_access(pass, ATP_CELL_BODY);
    words->body = body;
    words->bitmap = bitmap;
}

/* Adds `bits` if the shape fits. Returns the bitmap before; 0: does not fit. With bits 0 it only reads. */
static inline uint32_t atp_cell_body_gather(struct atp_pass* pass, struct atp_pipeline_words* words, uint32_t body,
                                            uint32_t bits) {
    uint32_t before = words->bitmap;
    atp_count_access(pass, ATP_CELL_BODY);
    if (words->body != body) return 0;
    words->bitmap = before | bits;
    return before;
}

static inline uint32_t atp_cell_body_read(struct atp_pass* pass, const struct atp_pipeline_words* words) {
    atp_count_access(pass, ATP_CELL_BODY);
    return words->body;
}

static inline void atp_cell_time_touch(struct atp_pass* pass, struct atp_pipeline_words* words) {
    atp_count_access(pass, ATP_CELL_TIME);
    words->touched_us = pass->now_us;
}

static inline int atp_cell_time_is_aged(struct atp_pass* pass, const struct atp_pipeline_words* words) {
    atp_count_access(pass, ATP_CELL_TIME);
    return (int32_t)(pass->now_us - words->touched_us) > (int32_t)pass->ageing_us;
}

static inline void atp_cell_mark_write(struct atp_pass* pass, struct atp_pipeline_words* words, uint32_t marks) {
    atp_count_access(pass, ATP_CELL_MARK);
    words->marks = marks;
}

/* Returns all marks. */
static inline uint32_t atp_cell_mark_add(struct atp_pass* pass, struct atp_pipeline_words* words, uint32_t marks) {
    atp_count_access(pass, ATP_CELL_MARK);
    words->marks |= marks;
    return words->marks;
}

#ifdef __cplusplus
static_assert(sizeof(atp_pipeline_words) == 28, "no padding");
#pragma GCC diagnostic pop
#endif

#endif
