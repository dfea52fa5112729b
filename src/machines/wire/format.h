/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Layout of an ATP packet: the bytes after the UDP header.
 *
 * Freestanding C: user space, the simulator and eBPF programs compile this file. docs/spec/packet.md#header defines the
 * meaning and is normative. wire.toml has the definition of both; add a field there. tests/conformance/wire.json has
 * golden vectors for other implementations.
 */
#ifndef ATP_WIRE_FORMAT_H
#define ATP_WIRE_FORMAT_H

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#else
#ifdef ATP_FREESTANDING_TYPES /* eBPF: the program gets these names from vmlinux.h or linux/types.h */
#else
#include <stddef.h>
#include <stdint.h>
#endif
#endif

/* tools/write_wire writes the layout from src/machines/wire/wire.toml. */

/*
 *     0        1        2        3        4        5        6        7
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *   0|version |  type  |      flags      |  hop   | lanes  | window | scale  |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *   8|                job                |     channel     |     worker      |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *  16|                                 token                                 |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *  24|                seq                |               index               |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *  32|             argument              |      peer       |sending |  part  |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *  40|              bitmap0              |               mask0               |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *  48|              bitmap1              |               mask1               |
 *    +--------+--------+--------+--------+--------+--------+--------+--------+
 *  56| lanes, 4 bytes each, as many as the datagram holds ...
 */

/* First byte of a packet. High nibble: a mark that random bytes rarely carry. Low nibble: the version. */
#define ATP_VERSION 0xA5u

/* First byte of a control message. Packets and control messages have the same version and differ by their types. */
#define ATP_CONTROL_VERSION 0xA5u

/* Length of a lane: a word behind the header. */
#define ATP_LANE_BYTES 4u

/* Lanes at the end of a packet with PROOF: words that every target adds modulo 2^32. */
#define ATP_PROOF_LANES 4u

/* Words of each further ACK in an ACK_LIST. */
#define ATP_LISTED_ACK_LANES 4u

/* Words of the longest ACK_LIST, which has 16 ACKs. */
#define ATP_MAX_ACK_LIST_LANES 60u

/* Lanes of the largest packet: the largest UDP payload over IPv4 is 65,507 bytes. */
#define ATP_MAX_LANES 16362u

/* Levels of switches: the worker's own switch is hop 0, the server's switch is hop 1. */
#define ATP_LEVELS 2u

/* Bits of a bitmap: members of a unit, and units of a job. */
#define ATP_BITMAP_BITS 32u

/* Types from here on are control messages, which share the port: wire/control.h. */
#define ATP_TYPE_CONTROL 16u

/* `worker` of a packet that has no single sender or receiver, and `peer` of one that concerns all workers. */
#define ATP_WORKER_ALL 0xFFFFu

/* Argument of a WAIT for a mismatched fragment, which can never complete: workers use seq for different operations. */
#define ATP_WAIT_MISMATCHED 1u

/* Scale byte of 2^0. */
#define ATP_SCALE_ONE 128u

/* A window is 2^window_log2 packets, at least 1. The limit keeps it far below half of the sequence space. */
#define ATP_WINDOW_LOG2_MAX 16u

#define ATP_HEADER_BYTES 56u
#define ATP_MAX_PACKET_BYTES (ATP_HEADER_BYTES + ATP_MAX_LANES * ATP_LANE_BYTES)

/* Types exclude each other, so they share one field. Flags combine, so each is one bit. */
enum atp_type {
    ATP_TYPE_GRADIENT = 1, /* up: lanes of one worker, or a sum of several */
    ATP_TYPE_ACK = 2,      /* down: the sum; releases the aggregator */
    ATP_TYPE_NACK = 3,     /* down: the workers in the bitmaps send seq again */
    ATP_TYPE_PROBE = 4,    /* up: this worker has sent seq and has no ACK */
    ATP_TYPE_WAIT = 5,     /* down: answer to a PROBE that needs no resend; argument 1: mismatched */
    ATP_TYPE_FLUSH = 6, /* down: the switch at level `hop` returns its partial sum of seq and releases the aggregator */
    ATP_TYPE_READY = 7, /* up: this worker takes the results before `argument` */
    ATP_TYPE_ACK_LIST = 8, /* down: ACKs without lanes of several fragments, whose aggregators are free */
};
#define ATP_TYPE_LAST ATP_TYPE_ACK_LIST

/* Bits of `flags`. */
enum atp_flag {
    ATP_FLAG_RESEND = 1 << 0, /* sent again: never claims; fetches the partial sum of level 0 */
    ATP_FLAG_BYPASS = 1 << 1, /* no switch aggregates it; on a NACK: resend with BYPASS, and release the aggregator */
    ATP_FLAG_COLLISION = 1 << 2, /* its aggregator held another fragment */
    ATP_FLAG_ECN = 1 << 3,       /* a contribution met congestion on its way up */
    ATP_FLAG_OVERFLOW = 1 << 4,  /* a sum overflowed: the lanes are invalid */
    ATP_FLAG_WHOLE = 1 << 5,     /* each unit in bitmap1 is included with all its members; bitmap0 has no meaning */
    ATP_FLAG_AUDIT = 1 << 6,     /* the last lane is the audit lane, a sum modulo 2^32 */
    ATP_FLAG_PLAIN = 1 << 7,     /* unscaled integers; the result is integers too */
    ATP_FLAG_ALTERNATE_FREE = 1 << 8, /* the alternate aggregator of the fragment is free */
    ATP_FLAG_ONE_SENDER = 1 << 9,     /* the lanes of one worker are the result */
    ATP_FLAG_ECN_DOWN = 1 << 10,      /* a worker met congestion on its downlink */
    ATP_FLAG_PROOF = 1 << 11,         /* the last four lanes are proof words, sums modulo 2^32; excludes AUDIT */
    ATP_FLAG_LAST_RANK = 1 << 12,     /* last packet of the last rank of a member */
};
#define ATP_FLAG_ALL 0x1FFFu

/* Type of the words behind the header, and form of a fragment. */
enum atp_dtype {
    ATP_DTYPE_NONE = 0,    /* header only */
    ATP_DTYPE_INT32 = 1,   /* one element in each lane */
    ATP_DTYPE_FLOAT32 = 2, /* one element in each lane */
    ATP_DTYPE_INT16 = 3,   /* two elements in each lane */
    ATP_DTYPE_INT8 = 4,    /* four elements in each lane */
};
#define ATP_DTYPE_LAST ATP_DTYPE_INT8

/* Byte offsets, for code that does not use struct atp_header. */
enum atp_offset {
    ATP_OFFSET_VERSION = 0,
    ATP_OFFSET_TYPE = 1,
    ATP_OFFSET_FLAGS = 2,
    ATP_OFFSET_HOP = 4,
    ATP_OFFSET_LANES = 5,
    ATP_OFFSET_WINDOW = 6,
    ATP_OFFSET_SCALE = 7,
    ATP_OFFSET_JOB = 8,
    ATP_OFFSET_CHANNEL = 12,
    ATP_OFFSET_WORKER = 14,
    ATP_OFFSET_TOKEN = 16,
    ATP_OFFSET_SEQ = 24,
    ATP_OFFSET_INDEX = 28,
    ATP_OFFSET_ARGUMENT = 32,
    ATP_OFFSET_PEER = 36,
    ATP_OFFSET_SENDING = 38,
    ATP_OFFSET_PART = 39,
    ATP_OFFSET_BITMAP0 = 40,
    ATP_OFFSET_MASK0 = 44,
    ATP_OFFSET_BITMAP1 = 48,
    ATP_OFFSET_MASK1 = 52,
};

/* The header in host byte order, at the same offsets as on the wire. */
struct atp_header {
    uint8_t version;     /* ATP_VERSION */
    uint8_t type;        /* enum atp_type */
    uint16_t flags;      /* enum atp_flag */
    uint8_t hop;         /* next level that may aggregate it; FLUSH: the level addressed */
    uint8_t lanes;       /* type and form of the words */
    uint8_t window_log2; /* log2 of the slots W: lets a switch derive that seq - W is finished */
    uint8_t scale;       /* of scaled integers: 2^(scale - 128), 0: the scale of the job */
    uint32_t job;        /* number of the job */
    uint16_t channel;    /* number of the channel in the job */
    uint16_t worker;     /* up: sender; down: receiver, or ATP_WORKER_ALL */
    uint64_t token;      /* random for each incarnation of a job, which it identifies and authorises; never 0 */
    uint32_t seq;        /* number of the fragment */
    uint32_t index;      /* index of the aggregator */
    /* ACK: index for seq + W; GRADIENT: purpose and format; WAIT: 1 if mismatched; READY: end of what it takes */
    uint32_t argument;
    /* owner of the fragment; answers about others: worker whose packet caused them; ATP_WORKER_ALL: all or none */
    uint16_t peer;
    /* number of this sending of the fragment, modulo 256; answers repeat that of the packet that caused them */
    uint8_t sending;
    uint8_t part;     /* part of a fragment that travels in several packets */
    uint32_t bitmap0; /* included members of one unit; down: members addressed */
    uint32_t mask0;   /* all members of that unit */
    uint32_t bitmap1; /* included units, or the unit of bitmap0 */
    uint32_t mask1;   /* all units of the job */
};

/*
 * lanes_form: bits 7 to 4 of `lanes`: form that all workers use for the fragment: 1 int32, 3 int16, 4 int8; 0 in a
 * packet without lanes
 */
#define ATP_LANES_FORM_SHIFT 4u
#define ATP_LANES_FORM_MASK 0xFu
static inline uint8_t atp_lanes_form(const struct atp_header* header) {
    return header->lanes >> ATP_LANES_FORM_SHIFT & ATP_LANES_FORM_MASK;
}

/*
 * lanes_type: bits 3 to 0 of `lanes`: type of the words: 0 none, 1 int32, 2 float32, 3 int16, 4 int8. NACK: the type
 * that the server requests
 */
#define ATP_LANES_TYPE_SHIFT 0u
#define ATP_LANES_TYPE_MASK 0xFu
static inline uint8_t atp_lanes_type(const struct atp_header* header) {
    return header->lanes >> ATP_LANES_TYPE_SHIFT & ATP_LANES_TYPE_MASK;
}

/*
 * part_packet: bits 7 to 6 of `part`: number of the packet, if words wider than the form need several. NACK: 0,
 * since the worker sends all packets again
 */
#define ATP_PART_PACKET_SHIFT 6u
#define ATP_PART_PACKET_MASK 0x3u
static inline uint8_t atp_part_packet(const struct atp_header* header) {
    return header->part >> ATP_PART_PACKET_SHIFT & ATP_PART_PACKET_MASK;
}

/* part_rank: bits 5 to 0 of `part`: rank within the member, from 1; 0: the whole member */
#define ATP_PART_RANK_SHIFT 0u
#define ATP_PART_RANK_MASK 0x3Fu
static inline uint8_t atp_part_rank(const struct atp_header* header) {
    return header->part >> ATP_PART_RANK_SHIFT & ATP_PART_RANK_MASK;
}

#ifdef __cplusplus
#define ATP_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define ATP_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif
#define ATP_ASSERT_AT(field, offset)                                            \
    ATP_STATIC_ASSERT(__builtin_offsetof(struct atp_header, field) == (offset), \
                      #field " has left its place on the wire")

ATP_STATIC_ASSERT(sizeof(struct atp_header) == ATP_HEADER_BYTES, "the header has padding, or a field too many");
ATP_STATIC_ASSERT(ATP_HEADER_BYTES % 8u == 0u, "lanes would not start on a multiple of 8 bytes");
ATP_STATIC_ASSERT(ATP_MAX_PACKET_BYTES <= 65507u, "the largest packet does not fit into a UDP datagram");
ATP_ASSERT_AT(version, ATP_OFFSET_VERSION);
ATP_ASSERT_AT(type, ATP_OFFSET_TYPE);
ATP_ASSERT_AT(flags, ATP_OFFSET_FLAGS);
ATP_ASSERT_AT(hop, ATP_OFFSET_HOP);
ATP_ASSERT_AT(lanes, ATP_OFFSET_LANES);
ATP_ASSERT_AT(window_log2, ATP_OFFSET_WINDOW);
ATP_ASSERT_AT(scale, ATP_OFFSET_SCALE);
ATP_ASSERT_AT(job, ATP_OFFSET_JOB);
ATP_ASSERT_AT(channel, ATP_OFFSET_CHANNEL);
ATP_ASSERT_AT(worker, ATP_OFFSET_WORKER);
ATP_ASSERT_AT(token, ATP_OFFSET_TOKEN);
ATP_ASSERT_AT(seq, ATP_OFFSET_SEQ);
ATP_ASSERT_AT(index, ATP_OFFSET_INDEX);
ATP_ASSERT_AT(argument, ATP_OFFSET_ARGUMENT);
ATP_ASSERT_AT(peer, ATP_OFFSET_PEER);
ATP_ASSERT_AT(sending, ATP_OFFSET_SENDING);
ATP_ASSERT_AT(part, ATP_OFFSET_PART);
ATP_ASSERT_AT(bitmap0, ATP_OFFSET_BITMAP0);
ATP_ASSERT_AT(mask0, ATP_OFFSET_MASK0);
ATP_ASSERT_AT(bitmap1, ATP_OFFSET_BITMAP1);
ATP_ASSERT_AT(mask1, ATP_OFFSET_MASK1);

#undef ATP_ASSERT_AT

/* End of the written part. */

/* Usual values of `lanes` in a GRADIENT and an ACK: words of the form itself, and floats of a fragment in int32. */
enum atp_usual_lanes {
    ATP_INT32_LANES = ATP_DTYPE_INT32 << ATP_LANES_FORM_SHIFT | ATP_DTYPE_INT32,
    ATP_FLOAT32_LANES = ATP_DTYPE_INT32 << ATP_LANES_FORM_SHIFT | ATP_DTYPE_FLOAT32,
    ATP_INT16_LANES = ATP_DTYPE_INT16 << ATP_LANES_FORM_SHIFT | ATP_DTYPE_INT16,
    ATP_INT8_LANES = ATP_DTYPE_INT8 << ATP_LANES_FORM_SHIFT | ATP_DTYPE_INT8,
};

/* `lanes` of words of `type`, for a fragment whose form is `form`. */
static inline uint8_t atp_lanes_of(uint8_t form, uint8_t type) {
    const uint32_t high = form;
    return (high << ATP_LANES_FORM_SHIFT | type) & 0xFFu;
}

/* Elements in a word of `type`. */
static inline uint32_t atp_elements_per_word(uint8_t type) {
    return type == ATP_DTYPE_INT8 ? 4u : type == ATP_DTYPE_INT16 ? 2u : 1u;
}

#endif
