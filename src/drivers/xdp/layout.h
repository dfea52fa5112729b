/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the kernel's program and user space share: the values of its maps. Freestanding C.
 */
#ifndef ATP_XDP_LAYOUT_H
#define ATP_XDP_LAYOUT_H

#include "protocol/decide.h"
#include "wire/check.h"

/* Of one aggregator: what an MTU of 1,500 bytes holds over IPv4. A packet with more is for the server. */
#define ATP_XDP_LANES 352u
#define ATP_XDP_PAIRS (ATP_XDP_LANES / 2u)

/* One entry of the table. */
struct atp_xdp_aggregator {
    uint32_t lock; /* the kernel's struct bpf_spin_lock */
    struct atp_aggregator state;
    uint32_t unused;
    uint64_t pairs[ATP_XDP_PAIRS]; /* two lanes each, the first in the upper half: one addition for both */
};
ATP_STATIC_ASSERT(__builtin_offsetof(struct atp_xdp_aggregator, pairs) % 8u == 0u, "pairs are loaded in one piece");

/* A job that is aggregated here, by its number. */
struct atp_xdp_job {
    uint32_t token;
    uint32_t slot; /* of its counters */
    uint8_t level; /* the hop that this switch serves for the job */
    uint8_t unused[3];
};

/* A control message that passed, for user space to know whom to admit. */
#define ATP_XDP_LETTER_BYTES 160u /* a JOIN of 32 members of a unit, the longest that means anything here, has 155 */
#define ATP_XDP_LETTERS_BYTES (64u * 1024u)
struct atp_xdp_letter {
    uint32_t bytes;
    uint8_t message[ATP_XDP_LETTER_BYTES];
};

/* Of one processor: of all packets in slot 0, of one job in that job's. */
struct atp_xdp_counters {
    uint64_t events[ATP_EVENT_COUNT];
    uint64_t refused[ATP_REFUSAL_COUNT];
    uint64_t forged;
    uint64_t ecn;
    uint64_t overflows;
    uint64_t no_room;
    uint64_t oversized; /* gradients with more lanes than an aggregator has */
    uint64_t damaged;   /* gradients whose checksum does not hold */
};

#endif
