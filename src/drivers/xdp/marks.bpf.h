/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Congestion marks (docs/spec/packet.md#ip-and-udp): every frame that leaves a port is added to the port's
 * virtual queue, whatever its protocol. While the queue is congested, ECN-capable packets leave with CE if their sender
 * takes more than its part of the rate (protocol/virtual_queue.h).
 */
#ifndef ATP_XDP_MARKS_BPF_H
#define ATP_XDP_MARKS_BPF_H

#include "xdp/types.bpf.h"

#include "xdp/frame.bpf.h"
#include "xdp/header.bpf.h"
#include "xdp/maps.bpf.h"
#include "xdp/segments.bpf.h"

/* Ethernet and the part of an IP header that has the ECN bits, in IPv4 with the checksum of the header. */
#define ATP_MARKED_BYTES (ETH_HLEN + sizeof(struct iphdr))

/* Whose packets they are, in the queue of a port. */
struct atp_sender {
    uint32_t number;
    uint32_t weight;
};

/* `slot`: of the job's slice, which has the weight of its tenant. */
static inline struct atp_sender atp_sender_of_job(uint32_t number, uint32_t slot) {
    struct atp_sender sender = {.number = number, .weight = 1};
    const struct atp_locked_slice* slice = bpf_map_lookup_elem(&atp_slices, &slot);
    if (slice && slice->state.weight != 0) sender.weight = slice->state.weight;
    return sender;
}

/* A datagram is a packet of ATP if it begins like one. */
static inline struct atp_sender atp_sender_of(struct __sk_buff* skb) {
    struct atp_sender sender = {.number = ATP_SENDER_OTHERS, .weight = 1};
    struct atp_header header;
    uint8_t protocol = 0;
    uint32_t ip_bytes = atp_ip_bytes(skb, &protocol);
    if (ip_bytes == 0 || protocol != IPPROTO_UDP) return sender;
    if (bpf_skb_load_bytes(skb, ETH_HLEN + ip_bytes + ATP_UDP_BYTES, &header, ATP_OFFSET_SEQ) != 0) return sender;
    if (header.version != ATP_VERSION) return sender;
    struct atp_xdp_job_key key = atp_key_on_wire(header.job, header.token);
    const struct atp_xdp_job* job = bpf_map_lookup_elem(&atp_jobs, &key);
    if (job) return atp_sender_of_job(job->sender, job->slot);
    sender.number = ATP_SENDER_UNKNOWN;
    return sender;
}

static inline int atp_port_is_congested(struct atp_locked_port* port, uint32_t frames, uint32_t bytes,
                                        struct atp_sender sender) {
    uint64_t now_ns = bpf_ktime_get_ns();
    bytes += frames * port->bytes_per_frame;
    bpf_spin_lock(&port->lock);
    int is_congested = atp_shared_queue_add(&port->queue, now_ns, bytes, sender.number, sender.weight);
    bpf_spin_unlock(&port->lock);
    return is_congested;
}

static inline void atp_count_marked(struct atp_locked_port* port, uint32_t frames) {
    __sync_fetch_and_add(&port->marked, frames);
}

/*
 * True if the packet leaves with CE. Copies that a bridge sends to several ports share one header, and the kernel
 * refuses to mark a shared header, so such a packet gets its own. Behind a VLAN tag that is a part of the frame, as the
 * inner one of two tags is, the kernel would mark the tag.
 */
static inline int atp_mark_packet(struct __sk_buff* context) {
    if (context->protocol != bpf_htons(ETH_P_IP) && context->protocol != bpf_htons(ETH_P_IPV6)) return 0;
    return bpf_skb_ecn_set_ce(context) == 1 ||
           (bpf_skb_pull_data(context, ATP_MARKED_BYTES) == 0 && bpf_skb_ecn_set_ce(context) == 1);
}

/* For a packet that leaves an interface at tc egress. Pointers into it are invalid afterwards. */
static inline void atp_mark_leaving(struct __sk_buff* context) {
    uint32_t interface = context->ifindex;
    struct atp_locked_port* port = bpf_map_lookup_elem(&atp_ports, &interface);
    if (!port) return;
    struct atp_frames frames = atp_frames_of(context);
    if (!atp_port_is_congested(port, frames.count, frames.bytes, atp_sender_of(context))) return;
    if (atp_mark_packet(context)) atp_count_marked(port, frames.count);
}

/* True if it was ECN-capable. */
static inline int atp_set_congested(const struct xdp_md* context, const struct atp_frame* frame) {
    void* network = atp_begin(context) + (frame->network & ATP_OFFSET_MASK);
    struct iphdr* ipv4 = network;
    struct ipv6hdr* ipv6 = network;
    if (frame->version == 4) {
        if ((void*)(ipv4 + 1) > atp_end(context) || (ipv4->tos & ATP_ECN_MASK) == 0) return 0;
        uint16_t* tos = (uint16_t*)ipv4; /* the word of the checksum that contains it */
        uint16_t before = *tos;
        ipv4->tos |= ATP_ECN_CONGESTED;
        ipv4->check = atp_changed_checksum(ipv4->check, atp_minus(before) + *tos);
        return 1;
    }
    if ((void*)(ipv6 + 1) > atp_end(context) || (ipv6->flow_lbl[0] >> 4 & ATP_ECN_MASK) == 0) return 0;
    ipv6->flow_lbl[0] |= ATP_ECN_CONGESTED << 4;
    return 1;
}

/* For a packet that the XDP program returns through the interface at which it arrived, past tc egress. */
static inline void atp_mark_returned(const struct xdp_md* context, const struct atp_frame* frame,
                                     struct atp_sender sender) {
    uint32_t interface = context->ingress_ifindex;
    struct atp_locked_port* port = bpf_map_lookup_elem(&atp_ports, &interface);
    if (!port || !atp_port_is_congested(port, 1, (uint32_t)atp_length(context), sender)) return;
    if (atp_set_congested(context, frame)) atp_count_marked(port, 1);
}

#endif
