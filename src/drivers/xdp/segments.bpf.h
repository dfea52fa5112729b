/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The frames of a packet that leaves. A segmentation offload hands over one packet, which the kernel or the card cuts
 * into frames behind tc egress, each with headers of its own.
 */
#ifndef ATP_XDP_SEGMENTS_BPF_H
#define ATP_XDP_SEGMENTS_BPF_H

#include "xdp/types.bpf.h"

#include <linux/if_ether.h>
#include <linux/in.h>

/* Lengths and offsets in bytes. */
enum atp_segment_header {
    ATP_IPV4_PROTOCOL = 9,
    ATP_IPV6_BYTES = 40,
    ATP_IPV6_PROTOCOL = 6,
    ATP_TCP_LENGTH = 12,
    ATP_UDP_BYTES = 8,
};

struct atp_frames {
    uint32_t count;
    uint32_t bytes;    /* of all frames, with Ethernet headers */
    uint32_t ip_bytes; /* of the longest one, without its Ethernet header */
};

/* Bytes of the IP header, behind which a header of `*protocol` follows; 0: none. */
static inline uint32_t atp_ip_bytes(struct __sk_buff* skb, uint8_t* protocol) {
    uint8_t first = 0;
    uint32_t bytes = ATP_IPV6_BYTES, protocol_at = ATP_IPV6_PROTOCOL;
    if (skb->protocol == bpf_htons(ETH_P_IP)) {
        if (bpf_skb_load_bytes(skb, ETH_HLEN, &first, 1) != 0) return 0;
        bytes = (first & 0x0fu) * 4u;
        protocol_at = ATP_IPV4_PROTOCOL;
    } else if (skb->protocol != bpf_htons(ETH_P_IPV6)) {
        return 0;
    }
    return bpf_skb_load_bytes(skb, ETH_HLEN + protocol_at, protocol, 1) == 0 ? bytes : 0;
}

/* Headers of IP and of TCP or UDP in bytes; 0: of another protocol. */
static inline uint32_t atp_header_bytes(struct __sk_buff* skb) {
    uint8_t first = 0, protocol = 0;
    uint32_t ip_bytes = atp_ip_bytes(skb, &protocol);
    if (ip_bytes == 0) return 0;
    if (protocol == IPPROTO_UDP) return ip_bytes + ATP_UDP_BYTES;
    if (protocol != IPPROTO_TCP) return 0;
    if (bpf_skb_load_bytes(skb, ETH_HLEN + ip_bytes + ATP_TCP_LENGTH, &first, 1) != 0) return 0;
    return ip_bytes + (first >> 4) * 4u;
}

static inline struct atp_frames atp_frames_of(struct __sk_buff* skb) {
    struct atp_frames frames = {.count = 1, .bytes = skb->len, .ip_bytes = skb->len - ETH_HLEN};
    if (skb->gso_size == 0) return frames;
    uint32_t headers = atp_header_bytes(skb);
    if (headers == 0 || skb->len <= ETH_HLEN + headers + skb->gso_size) return frames;
    /* Not skb->gso_segs, which a virtual machine need not fill in. */
    frames.count = (skb->len - ETH_HLEN - headers + skb->gso_size - 1) / skb->gso_size;
    frames.bytes = skb->len + (frames.count - 1) * (ETH_HLEN + headers);
    frames.ip_bytes = headers + skb->gso_size;
    return frames;
}

#endif
