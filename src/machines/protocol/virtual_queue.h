/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The virtual queue of a port, which decides which packets get a congestion mark. It counts every frame that leaves the
 * port and drains at 0.98 of the link's rate, so it grows, and packets are marked, while the real queue is still empty
 * or short (Gibbens and Kelly, "Resource pricing and the evolution of congestion control"; HULL, NSDI '12). A link that
 * marks in this way keeps 2 % of its rate free and answers a burst with marks before the burst is dropped.
 *
 * A frame is marked for what is queued in front of it, and not for its own length. Otherwise a segmentation offload,
 * which hands over up to 64 kB as one frame, would be marked on an idle link.
 *
 * Freestanding C, as decide.h. The state is one moment, since a queue that drains at a known rate is known by the
 * moment at which it will be empty. Times are in 1/256 ns, because a short frame takes about one nanosecond at
 * 400 Gbit/s; they wrap after two years, which at worst marks the frames of one burst.
 *
 * Ownership: the caller owns the queue during a call.
 */
#ifndef ATP_PROTOCOL_VIRTUAL_QUEUE_H
#define ATP_PROTOCOL_VIRTUAL_QUEUE_H

#include "wire/format.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

#define ATP_QUEUE_DRAIN_PERCENT 98u
/*
 * A queue is congested beyond 96 kB plus what the link sends in 64 us: 100 kB at 500 Mbit/s, 174 kB at 10 Gbit/s. The
 * constant part is one frame of a segmentation offload, and 32 kB for packets of other senders that meet it. With 20
 * kB, two such frames in a row were marked, and a job used only half of its links of 500 Mbit/s. The other part follows
 * the round trip, which a controller needs to react.
 */
#define ATP_QUEUE_LIMIT_BYTES 96000u
#define ATP_QUEUE_LIMIT_NS 64000u
/* Rates of a link in bit/s. At the lowest one, times of the longest frame still fit. */
#define ATP_QUEUE_LEAST_RATE 1000000ull
#define ATP_QUEUE_MOST_RATE 10000000000000ull

#define ATP_QUEUE_TICK_LOG2 8u          /* ticks of the clock: 1/256 ns */
#define ATP_QUEUE_SHARE_LOG2 12u        /* parts of a tick in the time of a byte, which is short at a fast link */
#define ATP_QUEUE_BITS_NS 8000000000ull /* time of a byte at 1 bit/s */

struct atp_virtual_queue {
    uint64_t empty_at;  /* moment at which it will be empty, in ticks */
    uint64_t limit;     /* time after which it is congested, in ticks */
    uint64_t byte_time; /* at the drain rate, in 1/4096 ticks */
};
ATP_STATIC_ASSERT(sizeof(struct atp_virtual_queue) == 24u, "no padding");

static inline uint64_t atp_queue_time(const struct atp_virtual_queue* queue, uint32_t bytes) {
    return bytes * queue->byte_time >> ATP_QUEUE_SHARE_LOG2;
}

/* An empty queue. `rate`: in bit/s, of the link, ATP_QUEUE_LEAST_RATE to ATP_QUEUE_MOST_RATE, or a share of it. */
static inline struct atp_virtual_queue atp_queue_of_link(uint64_t rate, uint64_t now_ns) {
    struct atp_virtual_queue queue;
    queue.empty_at = now_ns << ATP_QUEUE_TICK_LOG2;
    queue.byte_time =
        (ATP_QUEUE_BITS_NS << (ATP_QUEUE_TICK_LOG2 + ATP_QUEUE_SHARE_LOG2)) / (rate * ATP_QUEUE_DRAIN_PERCENT / 100u);
    queue.limit = atp_queue_time(&queue, ATP_QUEUE_LIMIT_BYTES) + ((uint64_t)ATP_QUEUE_LIMIT_NS << ATP_QUEUE_TICK_LOG2);
    return queue;
}

/*
 * Counts a frame that leaves at `now_ns`. True if the queue in front of it is congested. The queue grows to at most
 * twice its limit and one frame, so that marks end soon after the load has ended.
 */
static inline int atp_queue_add(struct atp_virtual_queue* queue, uint64_t now_ns, uint32_t bytes) {
    uint64_t now = now_ns << ATP_QUEUE_TICK_LOG2;
    uint64_t waits = queue->empty_at - now;
    if ((int64_t)waits < 0) waits = 0; /* it has been empty since */
    if (waits > 2u * queue->limit) waits = 2u * queue->limit;
    queue->empty_at = now + waits + atp_queue_time(queue, bytes);
    return waits > queue->limit;
}

/*
 * The virtual queue of a port that several senders share: all that is no packet of ATP counts as one, and each tenant,
 * or each job without a tenant, as one. Only senders that take more than their part are marked. The jobs divide their
 * part by weight, and all others together have as much as all jobs. What a sender does not use is divided among the
 * rest. Without parts, the sender that reacts most gets least: beside one flow of TCP, whose packets leave in frames of
 * 64 kB and whose round trip is shorter, a job that halved its windows kept a tenth of the link, and one that reacted
 * as DCTCP left a twentieth to TCP.
 *
 * Each sender has a queue of its own, which drains at the sender's part of the rate. The parts change whenever a queue
 * becomes empty, so lengths are counted in the time that the link had for the jobs or for the others, and for a job in
 * the time that it had for a job of weight 1 (generalized processor sharing; its clock is that of weighted fair
 * queueing).
 */
#define ATP_QUEUE_SENDERS 16u
#define ATP_SENDER_OTHERS 0u  /* of what is no packet of ATP */
#define ATP_SENDER_UNKNOWN 1u /* of jobs that the switch does not know */
#define ATP_SENDER_FIRST 2u   /* of tenants and jobs, from here on */

/* The clock of weight 1 has finer ticks, in which even a short frame of weight 1,000 at 400 Gbit/s counts. */
#define ATP_SENDER_SHARE_LOG2 10u
/* Two packets of 1,500 bytes. Frames of a segmentation offload would let a light sender take twice its part. */
#define ATP_SENDER_LEAST_BYTES 3000u
/* After a pause this long, in ticks (4 s), every queue is empty. */
#define ATP_QUEUE_PAUSE (1ull << 40)

struct atp_queue_sender {
    uint64_t empty_at; /* on its clock */
    uint64_t weight;   /* of a tenant or job, above 0 once it has sent */
};

struct atp_shared_queue {
    struct atp_virtual_queue all;
    uint64_t clock_of_class; /* ticks that the link had for the jobs, or for the others */
    uint64_t clock_of_one;   /* and for a job of weight 1, in finer ticks */
    uint64_t counted_to;     /* moment up to which the clocks count, in ticks */
    struct atp_queue_sender of[ATP_QUEUE_SENDERS];
};

static inline struct atp_shared_queue atp_shared_queue_of_link(uint64_t rate, uint64_t now_ns) {
    struct atp_shared_queue queue = {};
    queue.all = atp_queue_of_link(rate, now_ns);
    queue.counted_to = now_ns << ATP_QUEUE_TICK_LOG2;
    return queue;
}

static inline uint64_t atp_clock_of(const struct atp_shared_queue* queue, uint32_t sender) {
    return sender == ATP_SENDER_OTHERS ? queue->clock_of_class : queue->clock_of_one;
}

/* What the sender has in its queue, on its clock. An empty queue follows the clock, which may wrap. */
static inline uint64_t atp_sender_waits(struct atp_shared_queue* queue, uint32_t sender) {
    uint64_t waits = queue->of[sender].empty_at - atp_clock_of(queue, sender);
    if ((int64_t)waits > 0) return waits;
    queue->of[sender].empty_at = atp_clock_of(queue, sender);
    return 0;
}

static inline uint64_t atp_weight_of_jobs(struct atp_shared_queue* queue) {
    uint64_t weight = 0;
    uint32_t sender;
    for (sender = ATP_SENDER_UNKNOWN; sender < ATP_QUEUE_SENDERS; ++sender)
        if (atp_sender_waits(queue, sender) != 0) weight += queue->of[sender].weight;
    return weight;
}

static inline void atp_empty_queues(struct atp_shared_queue* queue) {
    uint32_t sender;
    for (sender = 0; sender < ATP_QUEUE_SENDERS; ++sender) queue->of[sender].empty_at = atp_clock_of(queue, sender);
}

/* `jobs`: weight of those that have something in their queues. */
static inline void atp_advance_clocks(struct atp_shared_queue* queue, uint64_t now, uint64_t jobs, int others) {
    uint64_t elapsed = now - queue->counted_to;
    if (queue->counted_to - now < ATP_QUEUE_PAUSE) return; /* clocks of processors differ */
    queue->counted_to = now;
    if (elapsed > ATP_QUEUE_PAUSE) {
        atp_empty_queues(queue);
        return;
    }
    if (jobs != 0 && others) {
        queue->counted_to -= elapsed & 1u;
        elapsed /= 2u;
    }
    queue->clock_of_class += elapsed;
    if (jobs != 0) queue->clock_of_one += (elapsed << ATP_SENDER_SHARE_LOG2) / jobs;
}

/*
 * As atp_queue_add(), for a frame of this sender. `weight`: of a tenant or a job, at least 1. A sender that takes no
 * more than its part again is soon no longer marked. A queue may hold two packets, however light its sender is.
 */
static inline int atp_shared_queue_add(struct atp_shared_queue* queue, uint64_t now_ns, uint32_t bytes, uint32_t sender,
                                       uint32_t weight) {
    uint32_t own = sender < ATP_QUEUE_SENDERS ? sender : ATP_SENDER_OTHERS;
    uint64_t jobs = atp_weight_of_jobs(queue);
    uint64_t time = atp_queue_time(&queue->all, bytes);
    uint64_t limit = queue->all.limit;
    uint64_t least;
    uint64_t waits;
    int takes_more;
    atp_advance_clocks(queue, now_ns << ATP_QUEUE_TICK_LOG2, jobs, atp_sender_waits(queue, ATP_SENDER_OTHERS) != 0);
    if (own != ATP_SENDER_OTHERS) {
        time = (time << ATP_SENDER_SHARE_LOG2) / weight;
        limit = (limit << ATP_SENDER_SHARE_LOG2) / (jobs == 0 ? weight : jobs);
        least = (atp_queue_time(&queue->all, ATP_SENDER_LEAST_BYTES) << ATP_SENDER_SHARE_LOG2) / weight;
        if (limit < least) limit = least;
        queue->of[own].weight = weight; /* counts from the next frame on */
    }
    waits = atp_sender_waits(queue, own);
    takes_more = waits > limit;
    if (takes_more) waits = limit;
    queue->of[own].empty_at = atp_clock_of(queue, own) + waits + time;
    return atp_queue_add(&queue->all, now_ns, bytes) && takes_more;
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
