/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Congestion marks (docs/spec/packet.md#ip-and-udp): every frame that leaves a port is added to the port's
 * virtual queue, whatever its protocol. While the queue is congested, ECN-capable packets leave with CE if their class
 * takes more than half of the rate (protocol/virtual_queue.h).
 */
#ifndef ATP_XDP_MARKS_BPF_H
#define ATP_XDP_MARKS_BPF_H

#include "xdp/types.bpf.h"

#include "xdp/frame.bpf.h"
#include "xdp/maps.bpf.h"
#include "xdp/segments.bpf.h"

/* Ethernet and the part of an IP header that has the ECN bits, in IPv4 with the checksum of the header. */
#define ATP_MARKED_BYTES (ETH_HLEN + sizeof(struct iphdr))

/* A datagram is a job's if it begins like a packet of ATP. */
static inline enum atp_link_class atp_class_of(struct __sk_buff* skb) {
    uint8_t first = 0, protocol = 0;
    uint32_t ip_bytes = ATP_IPV6_BYTES, protocol_at = ATP_IPV6_PROTOCOL;
    if (skb->protocol == bpf_htons(ETH_P_IP)) {
        if (bpf_skb_load_bytes(skb, ETH_HLEN, &first, 1) != 0) return ATP_CLASS_OTHERS;
        ip_bytes = (first & 0x0fu) * 4u;
        protocol_at = ATP_IPV4_PROTOCOL;
    } else if (skb->protocol != bpf_htons(ETH_P_IPV6)) {
        return ATP_CLASS_OTHERS;
    }
    if (bpf_skb_load_bytes(skb, ETH_HLEN + protocol_at, &protocol, 1) != 0 || protocol != IPPROTO_UDP ||
        bpf_skb_load_bytes(skb, ETH_HLEN + ip_bytes + ATP_UDP_BYTES, &first, 1) != 0)
        return ATP_CLASS_OTHERS;
    return first == ATP_VERSION ? ATP_CLASS_JOBS : ATP_CLASS_OTHERS;
}

static inline int atp_port_is_congested(struct atp_locked_port* port, uint32_t frames, uint32_t bytes,
                                        enum atp_link_class sender) {
    uint64_t now_ns = bpf_ktime_get_ns();
    bpf_spin_lock(&port->lock);
    int is_congested = atp_shared_queue_add(&port->queue, now_ns, bytes + frames * port->bytes_per_frame, sender);
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
    if (!atp_port_is_congested(port, frames.count, frames.bytes, atp_class_of(context))) return;
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
static inline void atp_mark_returned(const struct xdp_md* context, const struct atp_frame* frame) {
    uint32_t interface = context->ingress_ifindex;
    struct atp_locked_port* port = bpf_map_lookup_elem(&atp_ports, &interface);
    if (!port || !atp_port_is_congested(port, 1, (uint32_t)atp_length(context), ATP_CLASS_JOBS)) return;
    if (atp_set_congested(context, frame)) atp_count_marked(port, 1);
}

#endif
