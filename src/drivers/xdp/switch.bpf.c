/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The kernel switch: aggregates passing packets of admitted jobs, whatever their destination. atp_decide() decides
 * about each packet, as in every switch. A packet that needs no change passes as it arrived. The lock of an aggregator
 * is held from the decision to the last lane. A second program sees packets behind the first: it copies what is for all
 * members of a channel. A third one sees packets that leave: it sets congestion marks, and results of servers on this
 * host free their aggregators there.
 *
 * The verifier checks a function that is not static once for all its callers. These functions are the stages of a
 * packet, and share only the notes of the packet (struct atp_notes).
 */
#include "xdp/types.bpf.h"

#include "xdp/copies.bpf.h"
#include "xdp/frame.bpf.h"
#include "xdp/header.bpf.h"
#include "xdp/lanes.bpf.h"
#include "xdp/layout.h"
#include "xdp/maps.bpf.h"
#include "xdp/marks.bpf.h"
#include "xdp/messages.bpf.h"

#include <linux/pkt_cls.h>

/* Set before the program is loaded. */
const volatile uint16_t atp_port_be = 0;
const volatile uint32_t atp_ageing_us = 0;
const volatile uint32_t atp_aggregator_count = 0;
const volatile uint8_t atp_clock_is_fixed = 0; /* for tests: user space sets the time */

uint32_t atp_standing_now_us = 0;

/*
 * State of the packet in progress. It is in a map because the verifier assumes nothing about values read from a map. If
 * it were on the stack, the verifier would follow every loop again for each kind of frame, each checksum and each
 * decision.
 */
struct atp_notes {
    struct atp_frame frame;
    struct atp_header header;
    struct atp_decision decision;
    uint8_t level;   /* of the job */
    uint32_t slot;   /* of the job's counters and slice */
    uint32_t sender; /* number of the job's sender, for marks */
    uint32_t lanes;
    uint32_t place;      /* number of the aggregator */
    uint64_t header_sum; /* of the checksum, as it arrived */
    uint64_t lanes_sum;
    uint32_t checksum; /* enum atp_checksum */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __type(key, uint32_t);
    __type(value, struct atp_notes);
    __uint(max_entries, 1);
} atp_notes SEC(".maps");

static inline struct atp_notes* atp_notes_of_packet(void) {
    uint32_t only = 0;
    return bpf_map_lookup_elem(&atp_notes, &only);
}

/* Counters of a packet: those of all packets, and those of its job. */
struct atp_tellers {
    struct atp_xdp_counters* all;
    struct atp_xdp_counters* own;
};

static inline struct atp_tellers atp_tellers_of(const struct atp_notes* notes) {
    uint32_t all = 0;
    uint32_t own = notes->slot;
    struct atp_tellers tellers = {bpf_map_lookup_elem(&atp_counters, &all), bpf_map_lookup_elem(&atp_counters, &own)};
    return tellers;
}

#define ATP_COUNT(notes, field)                             \
    do {                                                    \
        struct atp_tellers tellers = atp_tellers_of(notes); \
        if (tellers.all) ++tellers.all->field;              \
        if (tellers.own) ++tellers.own->field;              \
    } while (0)

/* Compares the index here: if the compiler merges this with an earlier comparison, older verifiers refuse it. */
static inline void atp_count_one(uint64_t* counters, uint32_t which, uint32_t count) {
    which = atp_forgotten(which);
    if (which < count) ++counters[which];
}

static inline void atp_count_event(struct atp_tellers tellers, uint8_t event) {
    if (tellers.all) atp_count_one(tellers.all->events, event, ATP_EVENT_COUNT);
    if (tellers.own) atp_count_one(tellers.own->events, event, ATP_EVENT_COUNT);
}

static inline uint32_t atp_now_us(void) {
    if (atp_clock_is_fixed) return atp_standing_now_us;
    return (uint32_t)(bpf_ktime_get_coarse_ns() / 1000);
}

/* ---- packets that arrive */

static inline int atp_has_port(const struct atp_frame* frame) {
    return frame->destination == atp_port_be || frame->source == atp_port_be;
}

/* True for a datagram that may hold a packet. */
static inline int atp_open_frame(struct xdp_md* context, struct atp_notes* notes) {
    if (!atp_read_frame(context, &notes->frame) || !atp_has_port(&notes->frame)) return 0;
    if (!atp_is_control(context, &notes->frame)) return 1;
    atp_credit_join(context, &notes->frame);
    atp_copy_message(context, &notes->frame);
    return 0;
}

/* Checks a packet of `bytes` bytes, whose header the notes hold in wire format. */
static inline uint8_t atp_check_packet(struct atp_notes* notes, uint32_t bytes) {
    atp_swap_header(&notes->header);
    notes->lanes = (bytes - ATP_HEADER_BYTES) / ATP_LANE_BYTES;
    uint8_t refusal = atp_check_bytes(notes->header.version, bytes);
    return refusal != ATP_REFUSED_NOT ? refusal : atp_check_header(&notes->header, notes->lanes);
}

/* A refused packet passes: its receiver decides about it. */
static inline uint8_t atp_read_packet(const struct xdp_md* context, struct atp_notes* notes) {
    const struct atp_header* wire = (void*)(atp_datagram(context, &notes->frame) + 1);
    uint32_t bytes = notes->frame.bytes - sizeof(struct udphdr);
    if (bytes < ATP_HEADER_BYTES || (void*)(wire + 1) > atp_end(context)) return ATP_REFUSED_TRUNCATED;
    notes->header = *wire;
    notes->header_sum = atp_sum_of_words((const uint32_t*)wire, ATP_HEADER_BYTES / 4);
    return atp_check_packet(notes, bytes);
}

/* False if no job with this number and token is admitted here. Replaces a group number by the token of its job. */
static inline int atp_find_job(struct atp_notes* notes) {
    struct atp_xdp_job_key key = {.job = notes->header.job, .zero = 0, .token = notes->header.token};
    struct atp_xdp_job* job = bpf_map_lookup_elem(&atp_jobs, &key);
    notes->slot = job ? job->slot : 0;
    if (!job) return 0;
    notes->header.token = job->token;
    notes->level = job->level;
    notes->sender = job->sender;
    return 1;
}

/*
 * True if the packet has an aggregator: notes->place. An open switch takes no lock here, since its jobs have no slices.
 */
__noinline int atp_find_place(void) {
    struct atp_notes* notes = atp_notes_of_packet();
    if (!notes || notes->header.index >= atp_aggregator_count) return 0;
    struct atp_locked_slice* slice = bpf_map_lookup_elem(&atp_slices, &notes->slot);
    if (!slice) return 0;
    notes->place = notes->header.index;
    if (!*(const volatile uint8_t*)&slice->state.is_shared) return 1;
    uint32_t size = 0;
    bpf_spin_lock(&slice->lock);
    notes->place = atp_slice_index(&slice->state, &notes->header, &size);
    bpf_spin_unlock(&slice->lock);
    return size != 0;
}

static inline void atp_count_forged(const struct atp_notes* notes) {
    struct atp_tellers tellers = atp_tellers_of(notes);
    if (tellers.all) ++tellers.all->forged;
}

/* True for a packet of an admitted job that fits an aggregator. */
static inline int atp_accept_packet(const struct xdp_md* context, struct atp_notes* notes) {
    uint8_t refusal = atp_read_packet(context, notes);
    if (refusal != ATP_REFUSED_NOT) {
        uint32_t all = 0;
        struct atp_xdp_counters* counters = bpf_map_lookup_elem(&atp_counters, &all);
        if (counters) atp_count_one(counters->refused, refusal, ATP_REFUSAL_COUNT);
        return 0;
    }
    if (!atp_find_job(notes)) {
        atp_count_forged(notes);
        return 0;
    }
    if (notes->header.type == ATP_TYPE_GRADIENT) atp_add_credit(notes->slot, atp_length(context));
    if (notes->frame.congested) {
        /* The mark of an ACK stays in its IP header: see Switch::receive(). */
        if (notes->header.type == ATP_TYPE_GRADIENT) notes->header.flags |= ATP_FLAG_ECN;
        ATP_COUNT(notes, ecn);
    }
    if (notes->lanes <= ATP_XDP_LANES) return 1;
    ATP_COUNT(notes, oversized);
    return 0;
}

/* Computes the checksum over the lanes as they arrived. */
static inline void atp_read_checksum(const struct xdp_md* context, struct atp_notes* notes) {
    struct atp_tally tally = {};
    struct atp_wire_lanes wire = {context, &notes->frame, notes->lanes};
    atp_each_pair(atp_sum_step, &wire, NULL, &tally);
    notes->lanes_sum = atp_checksum_of(&tally);
    notes->checksum = atp_check_datagram(&notes->frame, notes->header_sum + notes->lanes_sum);
}

/* False for lanes that were damaged on the path: they must not be added. */
static inline int atp_is_undamaged(const struct xdp_md* context, struct atp_notes* notes) {
    notes->lanes_sum = 0;
    notes->checksum = ATP_CHECKSUM_UNREAD;
    if (notes->header.type == ATP_TYPE_GRADIENT && atp_vouches_for_nothing(&notes->frame)) return 1;
    atp_read_checksum(context, notes);
    if (notes->checksum != ATP_CHECKSUM_WRONG) return 1;
    ATP_COUNT(notes, damaged);
    return 0;
}

static inline int atp_is_flush_here(const struct atp_notes* notes) {
    return notes->header.type == ATP_TYPE_FLUSH && notes->header.hop == notes->level;
}

/*
 * True if the packet shows how far its stream is, for the next change of slices. Read without the lock, because streams
 * only advance.
 */
static inline int atp_advances(const struct atp_notes* notes) {
    const struct atp_locked_slice* slice = bpf_map_lookup_elem(&atp_slices, &notes->slot);
    if (!slice || !*(const volatile uint8_t*)&slice->state.is_shared) return 0;
    return atp_slice_advances(&slice->state, &notes->header);
}

/* True for a packet that this switch handles; the notes then describe it. */
__noinline int atp_receive(struct xdp_md* context) {
    struct atp_notes* notes = atp_notes_of_packet();
    if (!notes || !atp_open_frame(context, notes) || !atp_accept_packet(context, notes)) return 0;
    int is_believed = notes->header.type == ATP_TYPE_GRADIENT || atp_is_flush_here(notes) || atp_advances(notes);
    return !is_believed || atp_is_undamaged(context, notes);
}

/* ---- packets that leave */

/* Writes the header into the packet. `change`: change of the sum of all other bytes that the checksum covers. */
static inline void atp_write_packet(const struct xdp_md* context, struct atp_notes* notes, uint64_t change) {
    struct atp_header* wire = (void*)(atp_datagram(context, &notes->frame) + 1);
    if ((void*)(wire + 1) > atp_end(context)) return;
    notes->header.version = ATP_VERSION;
    atp_swap_header(&notes->header);
    *wire = notes->header;
    change += atp_sum_of_words((const uint32_t*)&notes->header, ATP_HEADER_BYTES / 4);
    change += atp_minus(notes->header_sum);
    atp_update_checksum(context, &notes->frame, notes->checksum, change);
}

/* For a packet that returns: XDP_TX drops its offload state, so no network card completes a partial checksum. */
static inline void atp_complete_checksum(struct atp_notes* notes) {
    if (notes->checksum != ATP_CHECKSUM_PARTIAL) return;
    notes->frame.check = atp_full_checksum(&notes->frame, notes->header_sum + notes->lanes_sum);
    notes->checksum = ATP_CHECKSUM_FULL;
}

/* Carries out the decision. `change`: change of the sum of the lanes. */
__noinline int atp_leave(struct xdp_md* context, uint64_t change) {
    struct atp_notes* notes = atp_notes_of_packet();
    if (!notes) return XDP_PASS;
    atp_count_event(atp_tellers_of(notes), notes->decision.event);
    if (notes->decision.packet == ATP_PACKET_DROP) return XDP_DROP;
    if (notes->decision.packet != ATP_PACKET_RETURN) {
        if (notes->header.type != ATP_TYPE_GRADIENT) return XDP_PASS;
        if (notes->checksum == ATP_CHECKSUM_UNREAD) atp_read_checksum(context, notes);
        atp_write_packet(context, notes, change);
        return XDP_PASS;
    }
    /* A flush has become a gradient, which returns to the server. The checksum covers the UDP length twice. */
    uint32_t bytes = sizeof(struct udphdr) + ATP_HEADER_BYTES + notes->lanes * ATP_LANE_BYTES;
    uint64_t longer = bpf_htons(bytes) + atp_minus(bpf_htons(notes->frame.bytes));
    atp_complete_checksum(notes);
    atp_write_packet(context, notes, change + 2 * longer);
    atp_turn_around(context, &notes->frame, bytes);
    atp_mark_returned(context, &notes->frame, atp_sender_of_job(notes->sender, notes->slot));
    return XDP_TX;
}

/* ---- aggregation */

/* True if the aggregator holds the fragment that the flush requests. */
static inline int atp_holds(const struct atp_aggregator* state, const struct atp_header* flush) {
    return state->status != ATP_AGGREGATOR_FREE && atp_same_fragment(flush, state);
}

/*
 * No call is allowed under the lock, so this runs before it and uses a number of lanes that may change until then. If
 * the frame has no room for the lanes, they stay in the aggregator.
 */
static inline void atp_make_room(struct xdp_md* context, struct atp_notes* notes, const struct atp_aggregator* state) {
    uint32_t lanes = state->lanes;
    if (!atp_holds(state, &notes->header) || lanes > ATP_XDP_LANES || !atp_has_one_receiver(context)) return;
    if (atp_resize(context, &notes->frame, ATP_HEADER_BYTES + lanes * ATP_LANE_BYTES)) notes->lanes = lanes;
}

/* Without an aggregator, gradients go to the server unaggregated, flushes of this level end, and all else passes. */
static inline struct atp_decision atp_decide_without_aggregator(struct atp_header* header, int flush_here) {
    if (header->type == ATP_TYPE_GRADIENT && !(header->flags & ATP_FLAG_BYPASS) && header->hop < ATP_LEVELS)
        return atp_forward_alone(header, ATP_EVENT_MISFIT);
    return atp_decision_of(flush_here ? ATP_PACKET_DROP : ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED);
}

/* Called under the lock. True if an addition left its width. `change`: change of the sum of the packet's lanes. */
static inline int atp_move_lanes(struct xdp_md* context, struct atp_notes* notes, uint8_t action,
                                 struct atp_locked_aggregator* aggregator, uint64_t* change) {
    struct atp_wire_lanes wire = {context, &notes->frame, notes->lanes};
    struct atp_tally tally = {};
    int overflowed = 0;
    if (action == ATP_LANES_STORE) {
        atp_each_pair(atp_store_step, &wire, aggregator->pairs, &tally);
    } else if (action != ATP_LANES_EMIT) {
        overflowed = atp_add_lanes(&wire, aggregator->pairs, aggregator->state.flags);
    }
    if (action == ATP_LANES_EMIT || action == ATP_LANES_ADD_EMIT) {
        if (notes->checksum == ATP_CHECKSUM_UNREAD) atp_read_checksum(context, notes);
        atp_each_pair(atp_emit_step, &wire, aggregator->pairs, &tally);
        *change = atp_checksum_of(&tally) + atp_minus(notes->lanes_sum);
    }
    return overflowed;
}

/* Holds the lock from the decision to the last lane. */
static inline int atp_aggregate(struct xdp_md* context, struct atp_notes* notes,
                                struct atp_locked_aggregator* aggregator, int flush_here) {
    uint32_t now_us = atp_now_us();
    uint64_t change = 0;
    int overflowed = 0;
    bpf_spin_lock(&aggregator->lock);
    if (flush_here && atp_holds(&aggregator->state, &notes->header) && aggregator->state.lanes != notes->lanes) {
        bpf_spin_unlock(&aggregator->lock);
        ATP_COUNT(notes, no_room);
        return XDP_DROP;
    }
    notes->decision = atp_decide(&notes->header, notes->lanes, flush_here, &aggregator->state, now_us, atp_ageing_us);
    barrier(); /* read back, so that the verifier follows the rest once, and not for each path to a decision */
    struct atp_decision decision = notes->decision;
    if (decision.lanes != ATP_LANES_NONE) {
        overflowed = atp_move_lanes(context, notes, decision.lanes, aggregator, &change);
        if (overflowed) atp_overflowed(&notes->header, decision, &aggregator->state);
    }
    bpf_spin_unlock(&aggregator->lock);

    if (overflowed) ATP_COUNT(notes, overflows);
    return atp_leave(context, change);
}

SEC("xdp")
int atp_switch(struct xdp_md* context) {
    struct atp_notes* notes = atp_notes_of_packet();
    if (!notes || !atp_receive(context)) return XDP_PASS;
    int crosses = notes->header.type == ATP_TYPE_GRADIENT && notes->header.hop > notes->level;
    int flush_here = atp_is_flush_here(notes);
    if (crosses || notes->level >= ATP_LEVELS) {
        notes->decision = atp_decision_of(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED);
        return atp_leave(context, 0);
    }
    struct atp_locked_aggregator* aggregator =
        atp_find_place() ? bpf_map_lookup_elem(&atp_aggregators, &notes->place) : NULL;
    if (!aggregator) {
        notes->decision = atp_decide_without_aggregator(&notes->header, flush_here);
        return atp_leave(context, 0);
    }
    if (flush_here) atp_make_room(context, notes, &aggregator->state);
    return atp_aggregate(context, notes, aggregator, flush_here);
}

/* ---- results for all members of a channel, which arrive once */

/* Sends a copy of the frame to each member but its receiver. */
SEC("tc")
int atp_copy(struct __sk_buff* context) {
    struct atp_copying* copying = atp_copying_of_frame();
    if (!copying || !atp_note_copied(context, copying) || !atp_has_port(&copying->frame)) return TC_ACT_UNSPEC;
    if (!atp_is_copied(context, copying)) return TC_ACT_UNSPEC;
    if (!atp_read_destination(context, &copying->frame, &copying->original)) return TC_ACT_UNSPEC;
    copying->now = copying->original;
    uint32_t copies = atp_count_copies();
    if (copies == 0 || !atp_spend_credit((uint64_t)copies * context->len)) return TC_ACT_UNSPEC;
#pragma clang loop unroll(disable)
    for (uint32_t i = 0; i < ATP_XDP_MEMBERS; ++i) {
        if (atp_copy_to(context, i) != 0) return TC_ACT_SHOT;
    }
    return atp_restore_original(context) == 0 ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

/* ---- results of servers on this host, which leave it without having arrived */

/*
 * True for a result whose aggregator is free already: it is a further copy, or it was handled when it arrived at this
 * host. A packet that claims the aggregator meanwhile has another fragment, so the race is harmless.
 */
static inline int atp_is_freed(const struct atp_header* header, const struct atp_locked_aggregator* aggregator) {
    return header->type == ATP_TYPE_ACK && *(const volatile uint8_t*)&aggregator->state.status == ATP_AGGREGATOR_FREE;
}

/*
 * Handles one packet of a frame that leaves: the packet frees an aggregator as it would on arrival. Only a release is
 * counted, since most packets that leave were counted when they arrived.
 */
__noinline int atp_release_by(struct __sk_buff* context, uint32_t at, uint32_t bytes) {
    struct atp_notes* notes = atp_notes_of_packet();
    if (!notes || bytes < ATP_HEADER_BYTES) return 0;
    if (bpf_skb_load_bytes(context, at, &notes->header, ATP_HEADER_BYTES) != 0) return 0;
    if (atp_check_packet(notes, bytes) != ATP_REFUSED_NOT || notes->header.type == ATP_TYPE_GRADIENT) return 0;
    if (!atp_find_job(notes) || notes->level >= ATP_LEVELS || !atp_find_place()) return 0;
    struct atp_locked_aggregator* aggregator = bpf_map_lookup_elem(&atp_aggregators, &notes->place);
    if (!aggregator || atp_is_freed(&notes->header, aggregator)) return 0;
    uint32_t now_us = atp_now_us();
    bpf_spin_lock(&aggregator->lock);
    uint8_t before = aggregator->state.status;
    notes->decision = atp_decide(&notes->header, notes->lanes, 0, &aggregator->state, now_us, atp_ageing_us);
    uint8_t after = aggregator->state.status;
    bpf_spin_unlock(&aggregator->lock);
    if (before != after) atp_count_event(atp_tellers_of(notes), notes->decision.event);
    return 0;
}

/* Frames that leave an interface. Sets their congestion marks, and changes nothing else. The kernel may cut a frame
   into datagrams later. */
SEC("tc")
int atp_egress(struct __sk_buff* context) {
    atp_mark_leaving(context);
    struct atp_frame frame = {};
    void* begin = (void*)(long)context->data;
    if (!atp_read_headers(begin, (void*)(long)context->data_end, &frame) || !atp_has_port(&frame)) return TC_ACT_UNSPEC;
    uint32_t at = frame.datagram + sizeof(struct udphdr);
    uint32_t end = frame.datagram + frame.bytes;
    if (end > context->len) return TC_ACT_UNSPEC;
    if (atp_copied_leaving(context, &frame)) return TC_ACT_UNSPEC;
    uint32_t most = context->gso_size != 0 ? context->gso_size : frame.bytes;
#pragma clang loop unroll(disable)
    for (uint32_t segment = 0; segment < ATP_XDP_SEGMENTS && at < end; ++segment) {
        uint32_t left = end - at;
        atp_release_by(context, at, left < most ? left : most);
        at += most;
    }
    return TC_ACT_UNSPEC;
}

char atp_license[] SEC("license") = "GPL";
