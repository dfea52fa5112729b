/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Moves lanes between a packet and an aggregator, two at a time. Eight bytes of a packet are two lanes; swapping them
 * puts the first lane into the upper half of a number in host order. Additions wrap, and record which elements left
 * their width. A second pass repairs these elements, so that the usual pass has no branch. Two lanes have two elements
 * of 32 bits, four of 16 or eight of 8. No carry enters a neighbour (H53, docs/spec/hazards.md#h53).
 */
#ifndef ATP_XDP_LANES_BPF_H
#define ATP_XDP_LANES_BPF_H

#include "xdp/frame.bpf.h"
#include "xdp/layout.h"

#define ATP_PAIRS_A_BLOCK 8u
#define ATP_LANES_A_BLOCK (2 * ATP_PAIRS_A_BLOCK)
#define ATP_XDP_BLOCKS (ATP_XDP_LANES / ATP_LANES_A_BLOCK)
#define ATP_LANES_OFFSET (sizeof(struct udphdr) + ATP_HEADER_BYTES) /* from the UDP header */
#define ATP_BOTH_LANES (~0ull)
#define ATP_UPPER_LANE 0xffffffff00000000ull
#define ATP_SIGN_OF_LANES 0x8000000080000000ull
#define ATP_SIGNS_OF_INT16 0x8000800080008000ull
#define ATP_SIGNS_OF_INT8 0x8080808080808080ull

/* Lanes of a packet. */
struct atp_wire_lanes {
    const struct xdp_md* context;
    const struct atp_frame* frame;
    uint32_t count;
};

/* Results of the steps of one pass. */
struct atp_tally {
    uint64_t signs;      /* of narrow elements: the sign bit of each */
    uint32_t width;      /* of narrow elements, in bits */
    uint64_t overflowed; /* sign bits: of all steps but the last; of narrow elements: of all steps */
    uint64_t last;       /* sign bits of the last step */
    uint64_t sum;        /* of the packet's eight-byte words, in memory order */
    uint64_t upper;      /* of the upper halves of these words: what `sum` alone cannot carry */
};

typedef void (*atp_pair_step)(uint64_t* wire, uint64_t* held, struct atp_tally* tally);

/* Hides the origin of a number, so that the compiler and the verifier infer nothing from its earlier or later uses. */
static inline uint32_t atp_forgotten(uint32_t number) {
    barrier_var(number);
    return number;
}

/*
 * Visits whole blocks, then the remaining pairs, then the remaining lane. The end of the blocks is computed again
 * instead of counted, so that the verifier follows the remaining steps once, and not for each number of blocks.
 */
static inline void atp_each_pair(atp_pair_step step, const struct atp_wire_lanes* wire, uint64_t* held,
                                 struct atp_tally* tally) {
    const void* end = atp_end(wire->context);
    uint64_t* pair = (void*)atp_datagram(wire->context, wire->frame) + ATP_LANES_OFFSET;
    uint32_t blocks = atp_forgotten(wire->count) / ATP_LANES_A_BLOCK;
#pragma clang loop unroll(disable)
    for (uint32_t done = 0; done < ATP_XDP_BLOCKS; done = atp_forgotten(done + 1)) {
        if (done >= blocks) break;
        if ((void*)(pair + ATP_PAIRS_A_BLOCK) > end) return;
#pragma clang loop unroll(full)
        for (uint32_t at = 0; at < ATP_PAIRS_A_BLOCK; ++at)
            step(pair + at, held + done * ATP_PAIRS_A_BLOCK + at, tally);
        pair += ATP_PAIRS_A_BLOCK;
    }

    uint32_t lanes = atp_forgotten(wire->count);
    blocks = atp_forgotten(lanes / ATP_LANES_A_BLOCK);
    if (blocks >= ATP_XDP_BLOCKS) return;
    pair = (void*)atp_datagram(wire->context, wire->frame) + ATP_LANES_OFFSET;
    pair += blocks * ATP_PAIRS_A_BLOCK;
    held += blocks * ATP_PAIRS_A_BLOCK;
    uint32_t pairs = lanes % ATP_LANES_A_BLOCK / 2;
#pragma clang loop unroll(disable)
    for (uint32_t done = 0; done < ATP_PAIRS_A_BLOCK - 1; done = atp_forgotten(done + 1)) {
        if (done >= pairs) break;
        if ((void*)(pair + 1) > end) return;
        step(pair++, held++, tally);
    }
    if ((lanes & 1) != 0) {
        uint32_t* lane = (void*)pair;
        if ((void*)(lane + 1) > end) return;
        uint64_t alone = *lane;
        step(&alone, held, tally);
        *lane = (uint32_t)alone;
    }
}

static inline void atp_sum_step(uint64_t* wire, uint64_t* held, struct atp_tally* tally) {
    uint64_t pair = *wire;
    tally->sum += pair;
    tally->upper += pair >> 32;
}

static inline void atp_store_step(uint64_t* wire, uint64_t* held, struct atp_tally* tally) {
    *held = bpf_be64_to_cpu(*wire);
}

static inline void atp_add_step(uint64_t* wire, uint64_t* held, struct atp_tally* tally) {
    uint64_t addend = bpf_be64_to_cpu(*wire);
    uint64_t differs = addend ^ *held;
    uint64_t sum = addend + *held;
    sum -= (sum ^ differs) & (1ull << 32); /* the carry of the lower lane into the upper one */
    *held = sum;
    tally->overflowed |= tally->last;
    tally->last = (sum ^ addend) & ~differs; /* equal signs gave the other sign */
}

static inline uint32_t atp_saturated(uint32_t sum, uint32_t addend) {
    uint32_t before = sum - addend;
    uint32_t overflowed = (uint32_t)((int32_t)((sum ^ before) & (sum ^ addend)) >> 31);
    uint32_t limit = (uint32_t)((int32_t)before >> 31) ^ 0x7fffffffu;
    return (sum & ~overflowed) | (limit & overflowed);
}

static inline void atp_saturate_step(uint64_t* wire, uint64_t* held, struct atp_tally* tally) {
    uint64_t addend = bpf_be64_to_cpu(*wire);
    uint64_t upper = atp_saturated((uint32_t)(*held >> 32), (uint32_t)(addend >> 32));
    *held = upper << 32 | atp_saturated((uint32_t)*held, (uint32_t)addend);
}

/* Additions and subtractions of elements: without the signs no carry leaves an element, and `^` adds the signs. */
static inline uint64_t atp_narrow_sum(uint64_t a, uint64_t b, uint64_t signs) {
    return ((a & ~signs) + (b & ~signs)) ^ ((a ^ b) & signs);
}

static inline uint64_t atp_narrow_difference(uint64_t a, uint64_t b, uint64_t signs) {
    return ((a | signs) - (b & ~signs)) ^ ((a ^ ~b) & signs);
}

static inline void atp_add_narrow_step(uint64_t* wire, uint64_t* held, struct atp_tally* tally) {
    uint64_t addend = bpf_be64_to_cpu(*wire);
    uint64_t before = *held;
    uint64_t sum = atp_narrow_sum(addend, before, tally->signs);
    *held = sum;
    tally->overflowed |= (sum ^ addend) & ~(addend ^ before); /* equal signs gave the other sign */
}

static inline void atp_saturate_narrow_step(uint64_t* wire, uint64_t* held, struct atp_tally* tally) {
    uint64_t signs = tally->signs;
    uint32_t to_unit = tally->width - 1; /* from the sign of an element to its lowest bit */
    uint64_t addend = bpf_be64_to_cpu(*wire);
    uint64_t sum = *held;
    uint64_t before = atp_narrow_difference(sum, addend, signs);
    uint64_t overflowed = (sum ^ addend) & ~(addend ^ before) & signs;
    uint64_t elements = (overflowed << 1) - (overflowed >> to_unit); /* all bits of these; the highest may wrap */
    uint64_t limits = ~signs + ((before & signs) >> to_unit);
    *held = (sum & ~elements) | (limits & elements);
}

static inline void atp_emit_step(uint64_t* wire, uint64_t* held, struct atp_tally* tally) {
    uint64_t pair = bpf_cpu_to_be64(*held);
    *wire = pair;
    tally->sum += pair;
    tally->upper += pair >> 32;
}

/* The ones' complement sum of the words, for checksums. */
static inline uint64_t atp_checksum_of(const struct atp_tally* tally) {
    return tally->upper + (tally->sum - (tally->upper << 32));
}

/* The audit lane is the last lane. Its sum wraps by design, which is no overflow. */
static inline uint64_t atp_checked_of_last(uint32_t count, int audit) {
    if (!audit) return ATP_BOTH_LANES;
    return (count & 1) != 0 ? 0 : ATP_UPPER_LANE;
}

/* Adds one of the last lanes, which wraps by design. */
static inline void atp_add_wrapping(const struct atp_wire_lanes* wire, uint64_t* held, uint32_t at) {
    if (at >= ATP_XDP_LANES) return;
    const uint32_t* word = (void*)atp_datagram(wire->context, wire->frame) + ATP_LANES_OFFSET;
    word += at;
    if ((void*)(word + 1) > atp_end(wire->context)) return;
    uint32_t shift = (at & 1) != 0 ? 0 : 32;
    uint64_t pair = held[at / 2];
    uint64_t sum = (uint32_t)((uint32_t)(pair >> shift) + bpf_ntohl(*word));
    held[at / 2] = (pair & ~(0xffffffffull << shift)) | sum << shift;
}

static inline void atp_add_proof(const struct atp_wire_lanes* wire, uint64_t* held) {
#pragma clang loop unroll(full)
    for (uint32_t done = ATP_PROOF_LANES; done != 0; --done)
        atp_add_wrapping(wire, held, atp_forgotten(wire->count) - done);
}

/* True if an element left its width. The audit lane is no narrow element: the caller added it. */
static inline int atp_add_narrow_lanes(const struct atp_wire_lanes* wire, uint64_t* held, uint8_t flags) {
    int is_int16 = (flags & ATP_AGGREGATOR_INT16) != 0;
    struct atp_tally tally = {.signs = is_int16 ? ATP_SIGNS_OF_INT16 : ATP_SIGNS_OF_INT8, .width = is_int16 ? 16 : 8};
    atp_each_pair(atp_add_narrow_step, wire, held, &tally);
    if ((tally.overflowed & tally.signs) == 0) return 0;
    atp_each_pair(atp_saturate_narrow_step, wire, held, &tally);
    return 1;
}

/* True if an element left its width. `flags`: of the aggregator. */
static inline int atp_add_lanes(const struct atp_wire_lanes* all, uint64_t* held, uint8_t flags) {
    struct atp_wire_lanes counted = *all;
    const struct atp_wire_lanes* wire = &counted;
    if ((flags & ATP_AGGREGATOR_PROOF) != 0) {
        atp_add_proof(all, held);
        counted.count -= ATP_PROOF_LANES;
    }
    if ((flags & (ATP_AGGREGATOR_INT16 | ATP_AGGREGATOR_INT8)) != 0) {
        if ((flags & (ATP_AGGREGATOR_AUDIT | ATP_AGGREGATOR_PROOF)) == ATP_AGGREGATOR_AUDIT) {
            counted.count -= 1;
            atp_add_wrapping(all, held, atp_forgotten(counted.count));
        }
        return atp_add_narrow_lanes(wire, held, flags);
    }
    struct atp_tally tally = {};
    uint64_t checked = atp_checked_of_last(wire->count, flags & ATP_AGGREGATOR_AUDIT);
    uint32_t last = (wire->count - 1) / 2;
    atp_each_pair(atp_add_step, wire, held, &tally);
    if (((tally.overflowed | (tally.last & checked)) & ATP_SIGN_OF_LANES) == 0 || last >= ATP_XDP_PAIRS) return 0;
    uint64_t wrapped = held[last];
    atp_each_pair(atp_saturate_step, wire, held, &tally);
    held[last] = (held[last] & checked) | (wrapped & ~checked);
    return 1;
}

#endif
