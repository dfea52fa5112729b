/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Copies of what a server sends once for all members of a channel (docs/spec/switch.md#copies-in-the-path): results,
 * and the JOINED that tries whether all members get them. They arrive addressed to one member, with the channel's group
 * number as their token. A copy leaves by the interface at which its member's JOIN arrived, between the Ethernet
 * addresses of that frame, whether this host is a bridge or a router.
 *
 * The job pays for them with the frames that arrived (protocol/copy_credit.h).
 */
#ifndef ATP_XDP_COPIES_BPF_H
#define ATP_XDP_COPIES_BPF_H

#include "xdp/types.bpf.h"

#include "xdp/frame.bpf.h"
#include "xdp/header.bpf.h"
#include "xdp/lanes.bpf.h"
#include "xdp/layout.h"
#include "xdp/maps.bpf.h"

#define ATP_XDP_SEGMENTS 128u /* the kernel cuts no datagram into more */

/* Where control messages have the fields of their channel. */
enum atp_passed_field {
    ATP_JOIN_JOB = 12,
    ATP_JOIN_TOKEN = 16,
    ATP_JOINED_JOB = 12,
    ATP_JOINED_TOKEN = 16,
    ATP_PASSED_JOB_BYTES = 12, /* job and token */
};

static inline void atp_add_credit(uint32_t slot, uint64_t bytes) {
    struct atp_xdp_credit* credit = bpf_map_lookup_elem(&atp_credits, &slot);
    if (credit) atp_copy_credit_add(&credit->of_job, bytes);
}

/* A JOIN of an admitted job, whose frame may end at any byte. */
static inline void atp_credit_join(const struct xdp_md* context, const struct atp_frame* frame) {
    const uint8_t* message = (void*)(atp_datagram(context, frame) + 1);
    if ((void*)(message + ATP_JOIN_JOB + ATP_PASSED_JOB_BYTES) > atp_end(context)) return;
    if (message[ATP_OFFSET_TYPE] != ATP_TYPE_JOIN) return;
    uint32_t number = 0;
    uint64_t token = 0;
    __builtin_memcpy(&number, message + ATP_JOIN_JOB, sizeof number);
    __builtin_memcpy(&token, message + ATP_JOIN_TOKEN, sizeof token);
    struct atp_xdp_job_key key = atp_key_on_wire(number, token);
    const struct atp_xdp_job* job = bpf_map_lookup_elem(&atp_jobs, &key);
    if (job) atp_add_credit(job->slot, atp_length(context));
}

/* Who a frame is addressed to: what differs between copies. */
struct atp_destination {
    uint8_t ethernet[12];
    __be16 port;
    uint16_t unused;
    uint32_t host[4]; /* IPv4: the first */
};

/*
 * State of the frame in progress, in a map as struct atp_notes is. A copy passes the program at tc egress at once,
 * which uses those notes.
 */
struct atp_copying {
    struct atp_frame frame;
    struct atp_xdp_job_key key; /* of the channel */
    uint32_t is_message;        /* JOINED */
    uint32_t unused;
    struct atp_destination original;
    struct atp_destination now;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __type(key, uint32_t);
    __type(value, struct atp_copying);
    __uint(max_entries, 1);
} atp_copying SEC(".maps");

static inline struct atp_copying* atp_copying_of_frame(void) {
    uint32_t only = 0;
    return bpf_map_lookup_elem(&atp_copying, &only);
}

/*
 * True if the packet, or message, at this offset is for all members of a channel, whose key is noted. A frame may hold
 * several datagrams for one receiver: members ignore those that are not for them.
 */
__noinline int atp_is_for_members(struct __sk_buff* context, uint32_t at) {
    struct atp_copying* copying = atp_copying_of_frame();
    struct atp_header header;
    uint32_t job = 0;
    uint64_t token = 0;
    if (!copying || bpf_skb_load_bytes(context, at, &header, sizeof header) != 0) return 0;
    if (header.version != ATP_VERSION) return 0;
    if (header.type == ATP_TYPE_ACK && header.worker == bpf_htons(ATP_WORKER_ALL)) {
        job = header.job;
        token = header.token;
    } else if (header.type == ATP_TYPE_JOINED) {
        __builtin_memcpy(&job, (uint8_t*)&header + ATP_JOINED_JOB, sizeof job);
        __builtin_memcpy(&token, (uint8_t*)&header + ATP_JOINED_TOKEN, sizeof token);
    } else {
        return 0;
    }
    copying->key = atp_key_on_wire(job, token);
    copying->is_message = header.type != ATP_TYPE_ACK;
    return bpf_map_lookup_elem(&atp_members, &copying->key) != NULL;
}

/* Notes a frame without VLAN tags. */
static inline int atp_note_copied(struct __sk_buff* context, struct atp_copying* copying) {
    struct atp_frame frame = {};
    void* begin = (void*)(long)context->data;
    if (!atp_read_headers(begin, (void*)(long)context->data_end, &frame)) return 0;
    if (frame.network != ETH_HLEN || context->vlan_present || frame.datagram + frame.bytes > context->len) return 0;
    copying->frame = frame;
    return 1;
}

/* True if the noted frame holds a datagram for all members of a channel. */
static inline int atp_is_copied(struct __sk_buff* context, const struct atp_copying* copying) {
    uint32_t at = copying->frame.datagram + sizeof(struct udphdr);
    uint32_t end = copying->frame.datagram + copying->frame.bytes;
    uint32_t most = context->gso_size != 0 ? context->gso_size : copying->frame.bytes;
#pragma clang loop unroll(disable)
    for (uint32_t segment = 0; segment < ATP_XDP_SEGMENTS && at < end; ++segment) {
        if (atp_is_for_members(context, at)) return 1;
        at += most;
    }
    return 0;
}

static inline uint32_t atp_destination_host_at(const struct atp_frame* frame) {
    return atp_hosts_at(frame) + atp_hosts_bytes(frame) / 2;
}

static inline int atp_read_destination(struct __sk_buff* context, const struct atp_frame* frame,
                                       struct atp_destination* to) {
    __builtin_memset(to, 0, sizeof *to);
    to->port = frame->destination;
    if (bpf_skb_load_bytes(context, 0, to->ethernet, sizeof to->ethernet) != 0) return 0;
    if (frame->version == 4) return bpf_skb_load_bytes(context, atp_destination_host_at(frame), to->host, 4) == 0;
    return bpf_skb_load_bytes(context, atp_destination_host_at(frame), to->host, 16) == 0;
}

/* Addresses the frame, which went to `from`, to `to`. Returns 0, or an error after which the frame is worthless. */
static inline int atp_readdress(struct __sk_buff* context, const struct atp_frame* frame,
                                const struct atp_destination* from, const struct atp_destination* to) {
    uint32_t check_at = frame->datagram + __builtin_offsetof(struct udphdr, check);
    uint32_t host_at = atp_destination_host_at(frame);
    uint64_t flags = BPF_F_MARK_MANGLED_0;
    int code = 0;
    if (frame->version == 4) {
        code |= bpf_l4_csum_replace(context, check_at, from->host[0], to->host[0], flags | BPF_F_PSEUDO_HDR | 4);
        code |= bpf_l3_csum_replace(context, frame->network + __builtin_offsetof(struct iphdr, check), from->host[0],
                                    to->host[0], 4);
        code |= bpf_skb_store_bytes(context, host_at, to->host, 4, 0);
    } else {
        int64_t change = bpf_csum_diff((uint32_t*)from->host, 16, (uint32_t*)to->host, 16, 0);
        code |= bpf_l4_csum_replace(context, check_at, 0, change, flags | BPF_F_PSEUDO_HDR);
        code |= bpf_skb_store_bytes(context, host_at, to->host, 16, 0);
    }
    code |= bpf_l4_csum_replace(context, check_at, from->port, to->port, flags | 2);
    code |= bpf_skb_store_bytes(context, frame->datagram + __builtin_offsetof(struct udphdr, dest), &to->port, 2, 0);
    code |= bpf_skb_store_bytes(context, 0, to->ethernet, sizeof to->ethernet, 0);
    return code;
}

static inline int atp_is_original(const struct atp_copying* copying, const struct atp_xdp_member* member) {
    const struct atp_destination* to = &copying->original;
    return member->port == to->port && member->host[0] == to->host[0] && member->host[1] == to->host[1] &&
           member->host[2] == to->host[2] && member->host[3] == to->host[3];
}

/* The member with this number, whom this frame can reach; NULL: there is none. */
static inline const struct atp_xdp_member* atp_member_at(const struct atp_copying* copying, uint32_t number) {
    const struct atp_xdp_members* members = bpf_map_lookup_elem(&atp_members, &copying->key);
    number = atp_forgotten(number);
    if (!members || number >= members->count || number >= ATP_XDP_MEMBERS) return NULL;
    return members->each[number].version == copying->frame.version ? &members->each[number] : NULL;
}

/* How many copies the frame needs. The server sends to the first member: others get what another switch copied. */
__noinline uint32_t atp_count_copies(void) {
    const struct atp_copying* copying = atp_copying_of_frame();
    uint32_t copies = 0;
    if (!copying) return 0;
    const struct atp_xdp_member* first = atp_member_at(copying, 0);
    if (!first || !atp_is_original(copying, first)) return 0;
#pragma clang loop unroll(disable)
    for (uint32_t i = 1; i < ATP_XDP_MEMBERS; ++i) {
        if (atp_member_at(copying, i)) ++copies;
    }
    return copies;
}

/* A job that is forwarded unaggregated gets no copies. */
__noinline int atp_spend_credit(uint64_t bytes) {
    const struct atp_copying* copying = atp_copying_of_frame();
    if (!copying) return 0;
    const struct atp_xdp_job* job = bpf_map_lookup_elem(&atp_jobs, &copying->key);
    if (!job || job->level >= ATP_LEVELS) return 0;
    uint32_t slot = job->slot;
    struct atp_xdp_credit* credit = bpf_map_lookup_elem(&atp_credits, &slot);
    if (!credit) return 0;
    return atp_copy_credit_spend(&credit->of_job, bytes, !copying->is_message, bpf_ktime_get_coarse_ns());
}

/* Sends a copy to the member with this number, unless the frame itself reaches it. 0 unless the frame is worthless. */
__noinline int atp_copy_to(struct __sk_buff* context, uint32_t number) {
    struct atp_copying* copying = atp_copying_of_frame();
    if (!copying) return -1;
    const struct atp_xdp_member* member = atp_member_at(copying, number);
    if (!member || atp_is_original(copying, member)) return 0;
    uint32_t interface = member->interface;
    struct atp_destination next = {.port = member->port};
    /* The frame of a JOIN, in the other direction. */
    __builtin_memcpy(next.ethernet, member->ethernet + ETH_ALEN, ETH_ALEN);
    __builtin_memcpy(next.ethernet + ETH_ALEN, member->ethernet, ETH_ALEN);
    __builtin_memcpy(next.host, member->host, sizeof next.host);
    struct atp_frame frame = copying->frame;
    struct atp_destination now = copying->now;
    if (atp_readdress(context, &frame, &now, &next) != 0) return -1;
    copying->now = next;
    bpf_clone_redirect(context, interface, 0); /* a copy that is lost is asked for */
    return 0;
}

__noinline int atp_restore_original(struct __sk_buff* context) {
    struct atp_copying* copying = atp_copying_of_frame();
    if (!copying) return -1;
    struct atp_frame frame = copying->frame;
    struct atp_destination now = copying->now;
    struct atp_destination original = copying->original;
    return atp_readdress(context, &frame, &now, &original);
}

#endif
