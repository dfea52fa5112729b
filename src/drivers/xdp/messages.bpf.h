/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Copies of control messages, from which user space learns which jobs to admit. The messages themselves pass. */
#ifndef ATP_XDP_MESSAGES_BPF_H
#define ATP_XDP_MESSAGES_BPF_H

#include "xdp/types.bpf.h"

#include "xdp/frame.bpf.h"
#include "xdp/layout.h"
#include "xdp/maps.bpf.h"

static inline int atp_is_control(const struct xdp_md* context, const struct atp_frame* frame) {
    const uint8_t* at = (void*)(atp_datagram(context, frame) + 1);
    return (void*)(at + 2) <= atp_end(context) && at[ATP_OFFSET_VERSION] == ATP_CONTROL_VERSION &&
           at[ATP_OFFSET_TYPE] >= ATP_TYPE_CONTROL;
}

/* What user space learns about the datagram of a control message, except its hosts and its frame. */
static inline void atp_describe_message(const struct atp_frame* frame, uint32_t entrance, uint32_t bytes,
                                        struct atp_xdp_queued_message* queued_message) {
    queued_message->bytes = bytes;
    queued_message->entrance = entrance;
    queued_message->ports[0] = frame->source;
    queued_message->ports[1] = frame->destination;
    queued_message->version = frame->version;
    queued_message->is_plain = 0;
    __builtin_memset(queued_message->ethernet, 0, sizeof queued_message->ethernet);
}

static inline void atp_copy_message(struct xdp_md* context, const struct atp_frame* frame) {
    uint32_t bytes_but_one = atp_forgotten(frame->bytes - sizeof(struct udphdr) - 1);
    if (bytes_but_one >= ATP_XDP_QUEUED_MESSAGE_BYTES) bytes_but_one = ATP_XDP_QUEUED_MESSAGE_BYTES - 1;
    struct atp_xdp_queued_message* queued_message = bpf_ringbuf_reserve(&atp_message_queue, sizeof *queued_message, 0);
    if (!queued_message) return; /* it will be sent again */
    atp_describe_message(frame, context->ingress_ifindex, bytes_but_one + 1, queued_message);
    uint32_t at = frame->datagram + sizeof(struct udphdr);
    queued_message->is_plain = frame->network == ETH_HLEN;
    if (bpf_xdp_load_bytes(context, 0, queued_message->ethernet, sizeof queued_message->ethernet) != 0 ||
        bpf_xdp_load_bytes(context, atp_hosts_at(frame), queued_message->hosts, atp_hosts_bytes(frame)) != 0 ||
        bpf_xdp_load_bytes(context, at, queued_message->message, bytes_but_one + 1) != 0) {
        bpf_ringbuf_discard(queued_message, 0);
    } else {
        bpf_ringbuf_submit(queued_message, 0);
    }
}

/* Copies a control message that leaves: JOINED of the switch on this host. */
static inline int atp_copied_leaving(struct __sk_buff* context, const struct atp_frame* frame) {
    uint32_t at = frame->datagram + sizeof(struct udphdr);
    uint32_t bytes = frame->bytes - sizeof(struct udphdr);
    uint8_t begin[2];
    if (bpf_skb_load_bytes(context, at, begin, sizeof begin) != 0) return 0;
    if (begin[ATP_OFFSET_VERSION] != ATP_CONTROL_VERSION || begin[ATP_OFFSET_TYPE] < ATP_TYPE_CONTROL) return 0;
    uint32_t bytes_but_one = atp_forgotten(bytes - 1);
    if (bytes_but_one >= ATP_XDP_QUEUED_MESSAGE_BYTES) return 1;
    struct atp_xdp_queued_message* queued_message = bpf_ringbuf_reserve(&atp_message_queue, sizeof *queued_message, 0);
    if (!queued_message) return 1; /* it will be sent again */
    atp_describe_message(frame, context->ingress_ifindex, bytes_but_one + 1, queued_message);
    if (bpf_skb_load_bytes(context, atp_hosts_at(frame), queued_message->hosts, atp_hosts_bytes(frame)) != 0 ||
        bpf_skb_load_bytes(context, at, queued_message->message, bytes_but_one + 1) != 0) {
        bpf_ringbuf_discard(queued_message, 0);
    } else {
        bpf_ringbuf_submit(queued_message, 0);
    }
    return 1;
}

#endif
