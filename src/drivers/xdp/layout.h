/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Values of the maps that the kernel's program and user space share. Freestanding C. */
#ifndef ATP_XDP_LAYOUT_H
#define ATP_XDP_LAYOUT_H

#include "protocol/copy_credit.h"
#include "protocol/decide.h"
#include "protocol/slice.h"
#include "protocol/virtual_queue.h"
#include "wire/check.h"

/*
 * Number of this layout, in the names of the pinned maps: a start takes over the maps of its own layout only (H88). Add
 * 1 if any byte of a kept map gets another meaning, in struct atp_aggregator too.
 */
#define ATP_XDP_LAYOUT 3

/* Lanes of one aggregator: as many as an MTU of 1,500 bytes allows over IPv4. The server adds longer packets. */
#define ATP_XDP_LANES 352u
#define ATP_XDP_PAIRS (ATP_XDP_LANES / 2u)

/* One entry of the table. */
struct atp_xdp_aggregator {
    uint32_t lock; /* the kernel's struct bpf_spin_lock */
    uint32_t unused;
    struct atp_aggregator state;
    uint64_t pairs[ATP_XDP_PAIRS]; /* two lanes each, the first in the upper half: one addition for both */
};
ATP_STATIC_ASSERT(__builtin_offsetof(struct atp_xdp_aggregator, pairs) % 8u == 0u, "pairs are loaded in one piece");

/* Key of a job that is aggregated here. `token`: as packets carry it. Results by group carry a group number. */
struct atp_xdp_job_key {
    uint32_t job;
    uint32_t zero;
    uint64_t token;
};

struct atp_xdp_job {
    uint64_t token; /* of the job, whatever its packets carry */
    uint32_t slot;  /* of its counters and its slice */
    uint32_t key;   /* id of its tenant's key; 0: none */
    uint8_t level;  /* the hop that this switch serves for the job */
    uint8_t sender; /* whose packets they are in the queue of a port */
    uint8_t unused[6];
};

/* The aggregators of a job, by the slot of its counters. Packets and user space change it under the lock. */
struct atp_xdp_slice {
    uint32_t lock; /* the kernel's struct bpf_spin_lock */
    uint32_t unused;
    struct atp_slice state;
};

#define ATP_XDP_PORTS 1024u
/* A port whose packets get congestion marks. The key is the number of its interface. */
struct atp_xdp_port {
    uint32_t lock;            /* the kernel's struct bpf_spin_lock */
    uint32_t bytes_per_frame; /* of the link's rate, in addition to the frame from its Ethernet header on */
    struct atp_shared_queue queue;
    uint64_t marked; /* frames that left with CE while the queue was congested */
};

/* Types of control messages that the program reads. */
enum atp_xdp_message { ATP_TYPE_JOIN = ATP_TYPE_CONTROL, ATP_TYPE_JOINED = ATP_TYPE_CONTROL + 1 };

#define ATP_XDP_MEMBERS 32u
/* A member of a channel that gets a copy of what its server sends once for all. Its JOIN arrived from `host` and
   `port`, as on the wire, at `interface`, in a frame with these Ethernet addresses of receiver and sender. */
struct atp_xdp_member {
    uint32_t interface;
    uint16_t port;
    uint16_t version; /* of IP */
    uint8_t ethernet[12];
    uint32_t unused;
    uint32_t host[4]; /* IPv4: the first */
};
struct atp_xdp_members {
    uint32_t count;
    uint32_t unused;
    struct atp_xdp_member each[ATP_XDP_MEMBERS];
};

/* Of the copies of a job, in frames; a cache line of its own. */
struct atp_xdp_credit {
    struct atp_copy_credit of_job;
    uint64_t unused[4];
};

/* A control message that passed. User space learns from it which jobs to admit. The longest that is useful is a JOIN of
   the 32 members of a unit with four edges, four statements, a name and a code; tests/xdp/kernel_table_test.cc checks
   that it fits. Padding follows in a JOIN that is as long as the packets of its channel. The rest is cut off. */
#define ATP_XDP_QUEUED_MESSAGE_BYTES 928u
#define ATP_XDP_MESSAGE_QUEUE_BYTES (512u * 1024u)
struct atp_xdp_queued_message {
    uint32_t bytes;
    uint32_t entrance;    /* interface at which the frame arrived; 0: this host sent it */
    uint16_t ports[2];    /* of sender and receiver, as on the wire */
    uint32_t version;     /* of IP */
    uint8_t hosts[32];    /* addresses of sender and receiver: 4 bytes each, with IPv6 16 */
    uint8_t ethernet[12]; /* addresses of receiver and sender of the frame */
    uint32_t is_plain;    /* 1: the frame has no VLAN tag */
    uint8_t message[ATP_XDP_QUEUED_MESSAGE_BYTES];
};
ATP_STATIC_ASSERT(sizeof(struct atp_xdp_queued_message) % 8u == 0u, "entries of a queue are multiples of 8 bytes");

/* Counters of one processor. Slot 0 counts all packets, the slot of a job those of the job. */
struct atp_xdp_counters {
    uint64_t events[ATP_EVENT_COUNT];
    uint64_t refused[ATP_REFUSAL_COUNT];
    uint64_t forged;
    uint64_t ecn;
    uint64_t overflows;
    uint64_t no_room;
    uint64_t oversized; /* packets with more lanes than an aggregator has */
    uint64_t damaged;   /* gradients and flushes with a wrong checksum */
};

#endif
