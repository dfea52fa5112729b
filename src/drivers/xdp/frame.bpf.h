/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Headers in front of a packet: Ethernet with up to two VLAN tags, IPv4 or IPv6, UDP. Reads them, and keeps their
 * checksums valid when the payload changes.
 *
 * A frame is stored as offsets, and each use computes a pointer. For a pointer that lived longer, the verifier would
 * keep what each loop proves about it, and would follow every length of every loop separately.
 */
#ifndef ATP_XDP_FRAME_BPF_H
#define ATP_XDP_FRAME_BPF_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "wire/format.h"

#define ATP_VLAN_TAGS 2
#define ATP_ECN_MASK 3
#define ATP_ECN_CONGESTED 3
#define ATP_HOPS_OF_A_NEW_PACKET 64
#define ATP_OFFSET_MASK 127u /* Ethernet, two tags and the longest IPv4 header are 82 bytes */

struct atp_vlan_tag {
    __be16 control;
    __be16 protocol;
};

struct atp_frame {
    uint32_t network;  /* offset of the IP header */
    uint32_t datagram; /* offset of the UDP header */
    uint32_t bytes;    /* of the UDP datagram, header included */
    uint16_t check;    /* the UDP checksum as it arrived */
    __be16 source;
    __be16 destination;
    uint8_t version; /* of IP */
    uint8_t congested;
    uint64_t pseudo_sum; /* the part of the checksum that covers addresses, protocol and length */
};

static inline void* atp_begin(const struct xdp_md* context) { return (void*)(long)context->data; }
static inline void* atp_end(const struct xdp_md* context) { return (void*)(long)context->data_end; }

static inline uint64_t atp_length(const struct xdp_md* context) {
    uint64_t bytes = atp_end(context) - atp_begin(context);
    barrier_var(bytes); /* the difference of two pointers takes all 64 bits */
    return bytes;
}

/* Unchecked: the caller compares with atp_end() first. */
static inline struct udphdr* atp_datagram(const struct xdp_md* context, const struct atp_frame* frame) {
    return atp_begin(context) + (frame->datagram & ATP_OFFSET_MASK);
}

/* The addresses of sender and receiver follow each other. */
static inline uint32_t atp_hosts_at(const struct atp_frame* frame) {
    return frame->network +
           (frame->version == 4 ? __builtin_offsetof(struct iphdr, saddr) : __builtin_offsetof(struct ipv6hdr, saddr));
}

static inline uint32_t atp_hosts_bytes(const struct atp_frame* frame) { return frame->version == 4 ? 8 : 32; }

static inline uint64_t atp_sum_of_words(const uint32_t* words, uint32_t count) {
    uint64_t sum = 0;
#pragma clang loop unroll(full)
    for (uint32_t i = 0; i < count; ++i) sum += words[i];
    return sum;
}

static inline __be16 atp_skip_tags(void** at, const void* end, __be16 protocol) {
#pragma clang loop unroll(full)
    for (int i = 0; i < ATP_VLAN_TAGS; ++i) {
        struct atp_vlan_tag* tag = *at;
        if (protocol != bpf_htons(ETH_P_8021Q) && protocol != bpf_htons(ETH_P_8021AD)) break;
        if ((void*)(tag + 1) > end) break;
        protocol = tag->protocol;
        *at = tag + 1;
    }
    return protocol;
}

/* Returns the length of the header; 0 if it is not in front of a whole UDP datagram. */
static inline uint32_t atp_read_ipv4(void* at, const void* end, struct atp_frame* frame) {
    struct iphdr* ip = at;
    if ((void*)(ip + 1) > end) return 0;
    uint32_t header_bytes = ip->ihl * 4u;
    uint32_t fragment = bpf_ntohs(ip->frag_off) & 0x3fffu; /* the flag "more fragments", and the offset */
    if (ip->version != 4 || header_bytes < sizeof *ip || fragment != 0 || ip->protocol != IPPROTO_UDP) return 0;
    frame->version = 4;
    frame->congested = (ip->tos & ATP_ECN_MASK) == ATP_ECN_CONGESTED;
    frame->bytes = bpf_ntohs(ip->tot_len) - header_bytes;
    frame->pseudo_sum = (uint64_t)ip->saddr + ip->daddr;
    return header_bytes;
}

static inline uint32_t atp_read_ipv6(void* at, const void* end, struct atp_frame* frame) {
    struct ipv6hdr* ip = at;
    if ((void*)(ip + 1) > end) return 0;
    if (ip->version != 6 || ip->nexthdr != IPPROTO_UDP) return 0;
    frame->version = 6;
    frame->congested = (ip->flow_lbl[0] >> 4 & ATP_ECN_MASK) == ATP_ECN_CONGESTED;
    frame->bytes = bpf_ntohs(ip->payload_len);
    frame->pseudo_sum = atp_sum_of_words(ip->saddr.in6_u.u6_addr32, 4) + atp_sum_of_words(ip->daddr.in6_u.u6_addr32, 4);
    return sizeof *ip;
}

/* True for the headers of a UDP datagram, which may end behind `end`. */
static inline int atp_read_headers(void* begin, const void* end, struct atp_frame* frame) {
    struct ethhdr* ethernet = begin;
    void* at = ethernet + 1;
    if (at > end) return 0;
    __be16 protocol = atp_skip_tags(&at, end, ethernet->h_proto);
    uint32_t header_bytes = 0;
    if (protocol == bpf_htons(ETH_P_IP)) header_bytes = atp_read_ipv4(at, end, frame);
    if (protocol == bpf_htons(ETH_P_IPV6)) header_bytes = atp_read_ipv6(at, end, frame);
    if (header_bytes == 0) return 0;

    frame->network = at - begin;
    frame->datagram = frame->network + header_bytes;
    const struct udphdr* udp = begin + (frame->datagram & ATP_OFFSET_MASK);
    if ((void*)(udp + 1) > end) return 0;
    if (frame->bytes < sizeof *udp || frame->bytes != bpf_ntohs(udp->len)) return 0;
    frame->check = udp->check;
    frame->source = udp->source;
    frame->destination = udp->dest;
    frame->pseudo_sum += bpf_htons(IPPROTO_UDP) + udp->len;
    return 1;
}

/* True for a UDP datagram that is in the frame as a whole. */
static inline int atp_read_frame(const struct xdp_md* context, struct atp_frame* frame) {
    return atp_read_headers(atp_begin(context), atp_end(context), frame) &&
           frame->datagram + frame->bytes <= atp_length(context);
}

/* ---- checksums: ones' complement sums of 16 bits, in the byte order of memory, since every order gives the same */

static inline uint16_t atp_fold(uint64_t sum) {
    sum = (sum & 0xffffffffu) + (sum >> 32);
    sum = (sum & 0xffffffffu) + (sum >> 32);
    sum = (sum & 0xffffu) + (sum >> 16);
    sum = (sum & 0xffffu) + (sum >> 16);
    sum = (sum & 0xffffu) + (sum >> 16);
    return (uint16_t)sum;
}

/* Adding the complement subtracts. */
static inline uint64_t atp_minus(uint64_t sum) { return (uint16_t)~atp_fold(sum); }

enum atp_checksum {
    ATP_CHECKSUM_NONE,    /* the sender computed none */
    ATP_CHECKSUM_PARTIAL, /* the sender left the rest to a network card, which the packet never passed */
    ATP_CHECKSUM_FULL,
    ATP_CHECKSUM_WRONG,
    ATP_CHECKSUM_UNREAD, /* no checksum, or possibly a partial one: the payload was not checked */
};

/*
 * `payload`: sum of the payload. Full is tried first, so a checksum that came over a wire is never taken for partial. A
 * partial checksum did not pass a wire, and receivers do not check it.
 */
static inline enum atp_checksum atp_check_datagram(const struct atp_frame* frame, uint64_t payload) {
    uint64_t length = bpf_htons(frame->bytes);
    if (frame->check == 0) return ATP_CHECKSUM_NONE;
    if (atp_fold(frame->pseudo_sum + frame->source + frame->destination + length + frame->check + payload) == 0xffffu)
        return ATP_CHECKSUM_FULL;
    return frame->check == atp_fold(frame->pseudo_sum) ? ATP_CHECKSUM_PARTIAL : ATP_CHECKSUM_WRONG;
}

/*
 * True if the checksum does not cover the payload. One in 65,536 checksums that came over a wire has this value by
 * chance. Damage to such a packet may pass, as often as any checksum overlooks damage. If the program changes such a
 * packet, it computes the checksum before the packet leaves.
 */
static inline int atp_vouches_for_nothing(const struct atp_frame* frame) {
    return frame->check == 0 || frame->check == atp_fold(frame->pseudo_sum);
}

/* The checksum `check`, after the sum of the bytes that it covers changed by `change`. */
static inline uint16_t atp_changed_checksum(uint16_t check, uint64_t change) {
    check = ~atp_fold((uint16_t)~check + change);
    return check == 0 ? 0xffff : check;
}

/* The checksum that a datagram with this payload would have on a wire. */
static inline uint16_t atp_full_checksum(const struct atp_frame* frame, uint64_t payload) {
    uint64_t header = (uint64_t)frame->source + frame->destination + bpf_htons(frame->bytes);
    return (uint16_t)~atp_fold(frame->pseudo_sum + header + payload);
}

/* `change`: change of the sum that the checksum covers. It includes the pseudo header only for a full checksum. */
static inline void atp_update_checksum(const struct xdp_md* context, const struct atp_frame* frame,
                                       enum atp_checksum kind, uint64_t change) {
    struct udphdr* udp = atp_datagram(context, frame);
    if ((void*)(udp + 1) > atp_end(context)) return;
    if (kind == ATP_CHECKSUM_FULL) udp->check = atp_changed_checksum(frame->check, change);
}

/* ---- returning a datagram to its sender, with another length */

/* Cuts or extends the frame to a payload of `bytes`. */
static inline int atp_resize(struct xdp_md* context, const struct atp_frame* frame, uint32_t bytes) {
    uint64_t requested = frame->datagram + sizeof(struct udphdr) + bytes;
    return bpf_xdp_adjust_tail(context, (int)(requested - atp_length(context))) == 0;
}

/* A multicast address cannot be the source of a datagram. */
static inline int atp_has_one_receiver(const struct xdp_md* context) {
    struct ethhdr* ethernet = atp_begin(context);
    return (void*)(ethernet + 1) <= atp_end(context) && (ethernet->h_dest[0] & 1) == 0;
}

static inline void atp_turn_ipv4(struct iphdr* ip, uint32_t header_and_bytes) {
    uint16_t* life = (uint16_t*)&ip->ttl; /* the word of the checksum that contains it */
    uint64_t before = (uint64_t)ip->tot_len + *life;
    __be32 source = ip->saddr;
    ip->saddr = ip->daddr;
    ip->daddr = source;
    ip->ttl = ATP_HOPS_OF_A_NEW_PACKET;
    ip->tot_len = bpf_htons(header_and_bytes);
    ip->check = atp_changed_checksum(ip->check, atp_minus(before) + ip->tot_len + *life);
}

static inline void atp_turn_ipv6(struct ipv6hdr* ip, uint32_t bytes) {
    struct in6_addr source = ip->saddr;
    ip->saddr = ip->daddr;
    ip->daddr = source;
    ip->hop_limit = ATP_HOPS_OF_A_NEW_PACKET;
    ip->payload_len = bpf_htons(bytes);
}

/* Exchanges receiver and sender; `bytes` of UDP. */
static inline void atp_turn_around(const struct xdp_md* context, const struct atp_frame* frame, uint32_t bytes) {
    struct ethhdr* ethernet = atp_begin(context);
    void* network = atp_begin(context) + (frame->network & ATP_OFFSET_MASK);
    struct udphdr* udp = atp_datagram(context, frame);
    if ((void*)(ethernet + 1) > atp_end(context) || (void*)(udp + 1) > atp_end(context)) return;
    struct ethhdr before = *ethernet;
    __builtin_memcpy(ethernet->h_dest, before.h_source, ETH_ALEN);
    __builtin_memcpy(ethernet->h_source, before.h_dest, ETH_ALEN);
    udp->source = frame->destination;
    udp->dest = frame->source;
    udp->len = bpf_htons(bytes);
    if (frame->version == 4 && network + sizeof(struct iphdr) <= atp_end(context))
        atp_turn_ipv4(network, frame->datagram - frame->network + bytes);
    if (frame->version == 6 && network + sizeof(struct ipv6hdr) <= atp_end(context)) atp_turn_ipv6(network, bytes);
}

#endif
