/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The switch inside the kernel: packets of admitted jobs are aggregated where they pass, whoever they are addressed to.
 * What it does with a packet is decided by atp_decide(), as everywhere; what it cannot or need not touch it passes as
 * it came. An aggregator is held under its lock from the decision to the last lane.
 */
#include "xdp/types.bpf.h"

#include "xdp/frame.bpf.h"
#include "xdp/lanes.bpf.h"
#include "xdp/layout.h"

/* Set before the program is loaded. */
const volatile uint16_t atp_port_be = 0;
const volatile uint32_t atp_ageing_us = 0;
const volatile uint8_t atp_clock_stands = 0; /* for tests: the time is what user space says */

uint32_t atp_standing_now_us = 0;

struct atp_locked_aggregator {
    struct bpf_spin_lock lock;
    struct atp_aggregator state;
    uint32_t unused;
    uint64_t pairs[ATP_XDP_PAIRS];
};
_Static_assert(sizeof(struct atp_locked_aggregator) == sizeof(struct atp_xdp_aggregator), "user space reads it");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, uint32_t);
    __type(value, struct atp_locked_aggregator);
    __uint(max_entries, 1);
} atp_aggregators SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __type(key, uint32_t);
    __type(value, struct atp_xdp_job);
    __uint(max_entries, 1);
} atp_jobs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __type(key, uint32_t);
    __type(value, struct atp_xdp_counters);
    __uint(max_entries, 1);
} atp_counters SEC(".maps");

/*
 * What is known of the packet on its way through. It lies in a map because the verifier knows nothing of what is read
 * from there: on the stack it would follow every loop for each kind of frame, each checksum and each decision anew.
 */
struct atp_notes {
    struct atp_frame frame;
    struct atp_header header;
    struct atp_decision decision;
    uint8_t level; /* of the job */
    uint32_t lanes;
    uint32_t index;      /* of the aggregator, as it arrived */
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

struct atp_passage {
    struct xdp_md* context;
    struct atp_notes* notes;
    struct atp_xdp_counters* all;
    struct atp_xdp_counters* own; /* the job's */
};

#define ATP_COUNT(passage, field) (++(passage)->all->field, ++(passage)->own->field)

/* Bounded as it is used, not as the compiler would fold it into earlier comparisons: older verifiers ask for that. */
static inline void atp_count_one(uint64_t* counters, uint32_t which, uint32_t count) {
    which = atp_forgotten(which);
    if (which < count) ++counters[which];
}

static inline uint32_t atp_now_us(void) {
    if (atp_clock_stands) return atp_standing_now_us;
    return (uint32_t)(bpf_ktime_get_coarse_ns() / 1000);
}

static inline void atp_swap_header(struct atp_header* header) {
    header->flags = bpf_ntohs(header->flags);
    header->job = bpf_ntohl(header->job);
    header->token = bpf_ntohl(header->token);
    header->channel = bpf_ntohs(header->channel);
    header->worker = bpf_ntohs(header->worker);
    header->seq = bpf_ntohl(header->seq);
    header->index = bpf_ntohl(header->index);
    header->argument = bpf_ntohl(header->argument);
    header->bitmap0 = bpf_ntohl(header->bitmap0);
    header->mask0 = bpf_ntohl(header->mask0);
    header->bitmap1 = bpf_ntohl(header->bitmap1);
    header->mask1 = bpf_ntohl(header->mask1);
}

static inline struct atp_wire_lanes atp_lanes_of(const struct atp_passage* passage) {
    struct atp_wire_lanes lanes = {passage->context, &passage->notes->frame, passage->notes->lanes};
    return lanes;
}

static inline int atp_is_control(const struct atp_passage* passage) {
    const uint8_t* at = (void*)(atp_datagram(passage->context, &passage->notes->frame) + 1);
    return (void*)(at + 2) <= atp_end(passage->context) && at[ATP_OFFSET_VERSION] == ATP_VERSION &&
           at[ATP_OFFSET_TYPE] >= ATP_TYPE_CONTROL;
}

/* False for what is no packet: whatever is refused is its receiver's to judge. */
static inline int atp_read_packet(struct atp_passage* passage) {
    struct atp_notes* notes = passage->notes;
    const struct atp_header* wire = (void*)(atp_datagram(passage->context, &notes->frame) + 1);
    uint32_t bytes = notes->frame.bytes - sizeof(struct udphdr);
    uint8_t refusal = ATP_REFUSED_TRUNCATED;
    if (bytes >= ATP_HEADER_BYTES && (void*)(wire + 1) <= atp_end(passage->context)) {
        notes->header = *wire;
        notes->header_sum = atp_sum_of_words((const uint32_t*)wire, ATP_HEADER_BYTES / 4);
        atp_swap_header(&notes->header);
        notes->lanes = (bytes - ATP_HEADER_BYTES) / ATP_LANE_BYTES;
        notes->index = notes->header.index;
        refusal = atp_check_bytes(notes->header.version, bytes);
        if (refusal == ATP_REFUSED_NOT) refusal = atp_check_header(&notes->header, notes->lanes != 0);
    }
    if (refusal != ATP_REFUSED_NOT) atp_count_one(passage->all->refused, refusal, ATP_REFUSAL_COUNT);
    return refusal == ATP_REFUSED_NOT;
}

/* False for packets of nobody who was admitted here. */
static inline int atp_find_job(struct atp_passage* passage) {
    struct atp_notes* notes = passage->notes;
    struct atp_xdp_job* job = bpf_map_lookup_elem(&atp_jobs, &notes->header.job);
    if (!job) {
        ++passage->all->forged;
        return 0;
    }
    passage->own = bpf_map_lookup_elem(&atp_counters, &job->slot);
    if (!passage->own) return 0;
    if (job->token != notes->header.token) {
        ATP_COUNT(passage, forged);
        return 0;
    }
    notes->level = job->level;
    return 1;
}

/* The mark of an ACK's IP header stays where it is: see Switch::receive(). */
static inline void atp_take_mark(struct atp_passage* passage) {
    struct atp_notes* notes = passage->notes;
    if (!notes->frame.congested) return;
    if (notes->header.type == ATP_TYPE_GRADIENT) notes->header.flags |= ATP_FLAG_ECN;
    ATP_COUNT(passage, ecn);
}

/* False for lanes that were changed on their way: nobody shall add them. */
static inline int atp_is_undamaged(struct atp_passage* passage) {
    struct atp_notes* notes = passage->notes;
    struct atp_tally tally = {};
    struct atp_wire_lanes wire = atp_lanes_of(passage);
    atp_each_pair(atp_sum_step, &wire, NULL, &tally);
    notes->lanes_sum = atp_checksum_of(&tally);
    notes->checksum = atp_check_datagram(&notes->frame, notes->header_sum + notes->lanes_sum);
    if (notes->checksum != ATP_CHECKSUM_WRONG) return 1;
    ATP_COUNT(passage, damaged);
    return 0;
}

/* The header as it is now, into the packet. `change` is that of everything else that the checksum covers. */
static inline void atp_write_packet(struct atp_passage* passage, uint64_t change, uint64_t in_pseudo_header) {
    struct atp_notes* notes = passage->notes;
    struct atp_header* wire = (void*)(atp_datagram(passage->context, &notes->frame) + 1);
    if ((void*)(wire + 1) > atp_end(passage->context)) return;
    notes->header.version = ATP_VERSION;
    atp_swap_header(&notes->header);
    *wire = notes->header;
    change += atp_sum_of_words((const uint32_t*)&notes->header, ATP_HEADER_BYTES / 4);
    change += atp_minus(notes->header_sum);
    atp_update_checksum(passage->context, &notes->frame, notes->checksum, change, in_pseudo_header);
}

static inline int atp_forward(struct atp_passage* passage, uint64_t change) {
    if (passage->notes->header.type == ATP_TYPE_GRADIENT) atp_write_packet(passage, change, 0);
    return XDP_PASS;
}

/* A flush has become a gradient: back to where the server is. */
static inline int atp_return(struct atp_passage* passage, uint64_t change) {
    struct atp_notes* notes = passage->notes;
    uint32_t bytes = sizeof(struct udphdr) + ATP_HEADER_BYTES + notes->lanes * ATP_LANE_BYTES;
    uint64_t longer = bpf_htons(bytes) + atp_minus(bpf_htons(notes->frame.bytes));
    atp_write_packet(passage, change + 2 * longer, longer); /* UDP's header says its length again */
    atp_turn_around(passage->context, &notes->frame, bytes);
    return XDP_TX;
}

static inline void atp_count_event(struct atp_passage* passage, uint8_t event) {
    atp_count_one(passage->all->events, event, ATP_EVENT_COUNT);
    atp_count_one(passage->own->events, event, ATP_EVENT_COUNT);
}

/* What has no aggregator in this table: gradients go to the server as they are, flushes end, all else passes. */
static inline int atp_pass_without_aggregator(struct atp_passage* passage, int flush_here) {
    struct atp_header* header = &passage->notes->header;
    uint8_t event = ATP_EVENT_PASSED;
    if (header->type == ATP_TYPE_GRADIENT && !(header->flags & ATP_FLAG_BYPASS) && header->hop < ATP_LEVELS)
        event = atp_forward_alone(header, ATP_EVENT_MISFIT).event;
    atp_count_event(passage, event);
    return flush_here ? XDP_DROP : atp_forward(passage, 0);
}

/* Under the lock. True when an addition left 32 bits; `emitted` is the sum of what the packet's lanes are then. */
static inline int atp_move_lanes(struct atp_passage* passage, uint8_t action, struct atp_locked_aggregator* aggregator,
                                 uint64_t* emitted) {
    struct atp_wire_lanes wire = atp_lanes_of(passage);
    struct atp_tally tally = {};
    int overflowed = 0;
    if (action == ATP_LANES_STORE) {
        atp_each_pair(atp_store_step, &wire, aggregator->pairs, &tally);
    } else if (action != ATP_LANES_EMIT) {
        overflowed = atp_add_lanes(&wire, aggregator->pairs, aggregator->state.flags & ATP_FLAG_AUDIT);
    }
    if (action == ATP_LANES_EMIT || action == ATP_LANES_ADD_EMIT) {
        atp_each_pair(atp_emit_step, &wire, aggregator->pairs, &tally);
        *emitted = atp_checksum_of(&tally);
    }
    return overflowed;
}

/* From the decision to the last lane, under the lock. */
static inline int atp_aggregate(struct atp_passage* passage, struct atp_locked_aggregator* aggregator, int flush_here) {
    struct atp_notes* notes = passage->notes;
    uint32_t now_us = atp_now_us();
    uint64_t emitted = notes->lanes_sum;
    int overflowed = 0;
    bpf_spin_lock(&aggregator->lock);
    if (flush_here && aggregator->state.lanes != notes->lanes) { /* another took it after room was made */
        bpf_spin_unlock(&aggregator->lock);
        ATP_COUNT(passage, no_room);
        return XDP_DROP;
    }
    notes->decision = atp_decide(&notes->header, notes->lanes, flush_here, &aggregator->state, now_us, atp_ageing_us);
    barrier(); /* read back: the verifier follows what comes next once, and not for each way to a decision */
    struct atp_decision decision = notes->decision;
    if (decision.lanes != ATP_LANES_NONE) {
        overflowed = atp_move_lanes(passage, decision.lanes, aggregator, &emitted);
        if (overflowed) atp_overflowed(&notes->header, decision, &aggregator->state);
    }
    bpf_spin_unlock(&aggregator->lock);

    if (overflowed) ATP_COUNT(passage, overflows);
    atp_count_event(passage, decision.event);
    if (decision.packet == ATP_PACKET_DROP) return XDP_DROP;
    uint64_t change = emitted + atp_minus(notes->lanes_sum);
    return decision.packet == ATP_PACKET_RETURN ? atp_return(passage, change) : atp_forward(passage, change);
}

/* False where what the aggregator holds cannot go back in place of the flush. */
static inline int atp_make_room(struct atp_passage* passage, const struct atp_locked_aggregator* aggregator) {
    struct atp_notes* notes = passage->notes;
    notes->lanes = aggregator->state.lanes;
    if (atp_has_one_receiver(passage->context) && notes->lanes <= ATP_XDP_LANES &&
        atp_resize(passage->context, &notes->frame, ATP_HEADER_BYTES + notes->lanes * ATP_LANE_BYTES))
        return 1;
    ATP_COUNT(passage, no_room);
    return 0;
}

SEC("xdp")
int atp_switch(struct xdp_md* context) {
    uint32_t first = 0;
    struct atp_passage passage = {
        .context = context,
        .notes = bpf_map_lookup_elem(&atp_notes, &first),
        .all = bpf_map_lookup_elem(&atp_counters, &first),
    };
    struct atp_notes* notes = passage.notes;
    if (!notes || !passage.all || !atp_read_frame(context, &notes->frame)) return XDP_PASS;
    if (notes->frame.destination != atp_port_be && notes->frame.source != atp_port_be) return XDP_PASS;
    if (atp_is_control(&passage) || !atp_read_packet(&passage) || !atp_find_job(&passage)) return XDP_PASS;
    atp_take_mark(&passage);

    int is_gradient = notes->header.type == ATP_TYPE_GRADIENT;
    int flush_here = notes->header.type == ATP_TYPE_FLUSH && notes->header.hop == notes->level;
    if (notes->lanes > ATP_XDP_LANES) {
        ATP_COUNT(&passage, oversized);
        return XDP_PASS;
    }
    if ((is_gradient || flush_here) && !atp_is_undamaged(&passage)) return XDP_PASS;
    if ((is_gradient && notes->header.hop > notes->level) || notes->level >= ATP_LEVELS) {
        atp_count_event(&passage, ATP_EVENT_PASSED);
        return atp_forward(&passage, 0);
    }
    struct atp_locked_aggregator* aggregator = bpf_map_lookup_elem(&atp_aggregators, &notes->index);
    /* Numbers of 16 bits are the server's to add: no lane here is split in two. */
    if (!aggregator || notes->header.dtype == ATP_DTYPE_INT16) return atp_pass_without_aggregator(&passage, flush_here);
    if (flush_here && !atp_make_room(&passage, aggregator)) return XDP_DROP;
    return atp_aggregate(&passage, aggregator, flush_here);
}

char atp_license[] SEC("license") = "GPL";
