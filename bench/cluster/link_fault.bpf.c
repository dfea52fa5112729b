/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Faults of a link in one direction, for every frame that leaves an interface, whatever its protocol. In this order: a
 * cut, a limit of the length, loss by chance, marks of a virtual queue, duplicates, delays. A duplicate is never
 * delayed.
 *
 * The sender of a lost frame receives no error, as on a wire, because the program returns TC_ACT_STOLEN. After
 * TC_ACT_SHOT, the kernel would report the loss to the sending socket, and TCP would react at once.
 *
 * A packet of several frames, which a segmentation offload would cut behind this program, has one fate. It is judged by
 * its longest frame and counted by its number of frames.
 */
#include "xdp/types.bpf.h"

#include <linux/pkt_cls.h>

#include "link_fault.h"
#include "xdp/segments.bpf.h"

#define ATP_COPY_MARK 0x41545043u /* of a duplicate, which passes this program a second time */
#define ATP_NS_PER_BYTE_AT_1_BPS 8000000000ull
#define ATP_DUPLICATE_STREAM 0x9e3779b9u /* separates the choice of duplicates from that of losses */
#define ATP_DELAY_STREAM 0x7f4a7c15u
/*
 * Frames that are delayed in sequence. The slow class sends the first one at once, and the others when its rate allows:
 * later frames of the link overtake them.
 */
#define ATP_DELAYED_GROUP 4u

struct atp_virtual_queue {
    struct bpf_spin_lock lock;
    uint64_t empty_at_ns; /* if no further frame comes */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct atp_link_fault);
} link_fault SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct atp_link_counts);
} link_counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct atp_virtual_queue);
} link_queue SEC(".maps");

static inline void atp_count(uint64_t* counter, uint64_t many) { __sync_fetch_and_add(counter, many); }

static inline uint32_t atp_mixed(uint32_t number) { /* the finalizer of MurmurHash3 */
    number = (number ^ number >> 16) * 0x85ebca6bu;
    number = (number ^ number >> 13) * 0xc2b2ae35u;
    return number ^ number >> 16;
}

/*
 * True if the queue is longer than its limit, with these bytes. It grows to at most twice the limit, so that marks end
 * soon after the load has ended.
 */
static inline int atp_queue_is_long(const struct atp_link_fault* fault, uint32_t bytes) {
    uint32_t zero = 0;
    struct atp_virtual_queue* queue = bpf_map_lookup_elem(&link_queue, &zero);
    if (!queue) return 0;
    uint64_t now = bpf_ktime_get_ns();
    uint64_t own = bytes * ATP_NS_PER_BYTE_AT_1_BPS / fault->mark_bps;
    uint64_t limit = fault->mark_bytes * ATP_NS_PER_BYTE_AT_1_BPS / fault->mark_bps;
    bpf_spin_lock(&queue->lock);
    uint64_t empty_at = queue->empty_at_ns > now ? queue->empty_at_ns : now;
    empty_at += own;
    if (empty_at > now + 2 * limit) empty_at = now + 2 * limit;
    queue->empty_at_ns = empty_at;
    bpf_spin_unlock(&queue->lock);
    return empty_at > now + limit;
}

/* The same choices for the same seed and order of frames. */
static inline int atp_happens(uint64_t share, uint32_t seed, uint64_t turn) {
    return atp_mixed(atp_mixed(seed) ^ (uint32_t)turn) < share;
}

SEC("tc")
int atp_link_fault(struct __sk_buff* skb) {
    uint32_t zero = 0;
    const struct atp_link_fault* fault = bpf_map_lookup_elem(&link_fault, &zero);
    struct atp_link_counts* counts = bpf_map_lookup_elem(&link_counts, &zero);
    if (!fault || !counts) return TC_ACT_UNSPEC;
    if (skb->mark == ATP_COPY_MARK) {
        skb->mark = 0;
        return TC_ACT_UNSPEC;
    }
    struct atp_frames frames = atp_frames_of(skb);
    atp_count(&counts->frames, frames.count);
    atp_count(&counts->bytes, frames.bytes);
    if (frames.count > 1) atp_count(&counts->merged, 1);
    if (fault->cut) {
        atp_count(&counts->cut, frames.count);
        return TC_ACT_STOLEN;
    }
    if (fault->longest && frames.ip_bytes > fault->longest) {
        atp_count(&counts->too_long, frames.count);
        return TC_ACT_STOLEN;
    }
    uint64_t turn = __sync_fetch_and_add(&counts->turn, 1);
    if (atp_happens(fault->loss, fault->seed, turn)) {
        atp_count(&counts->lost, frames.count);
        return TC_ACT_STOLEN;
    }
    if (fault->mark_bps && atp_queue_is_long(fault, frames.bytes) && bpf_skb_ecn_set_ce(skb) == 1) {
        atp_count(&counts->marked, frames.count);
    }
    if (atp_happens(fault->duplicates, fault->seed ^ ATP_DUPLICATE_STREAM, turn)) {
        uint32_t mark = skb->mark;
        skb->mark = ATP_COPY_MARK;
        if (bpf_clone_redirect(skb, skb->ifindex, 0) == 0) atp_count(&counts->duplicated, frames.count);
        skb->mark = mark;
    }
    if (atp_happens(fault->delays, fault->seed ^ ATP_DELAY_STREAM, turn / ATP_DELAYED_GROUP)) {
        skb->priority = ATP_LINK_SLOW_CLASS;
        atp_count(&counts->delayed, frames.count);
    }
    return TC_ACT_UNSPEC; /* further filters of the interface see the frame, too */
}

char atp_license[] SEC("license") = "GPL";
