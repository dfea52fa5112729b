/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The header of a packet, and how it names its job. */
#ifndef ATP_XDP_HEADER_BPF_H
#define ATP_XDP_HEADER_BPF_H

#include "xdp/types.bpf.h"

#include "wire/format.h"
#include "xdp/layout.h"

/* Between the wire format and the processor's, either way. */
static inline void atp_swap_header(struct atp_header* header) {
    header->flags = bpf_ntohs(header->flags);
    header->job = bpf_ntohl(header->job);
    header->channel = bpf_ntohs(header->channel);
    header->worker = bpf_ntohs(header->worker);
    header->token = bpf_be64_to_cpu(header->token);
    header->seq = bpf_ntohl(header->seq);
    header->index = bpf_ntohl(header->index);
    header->argument = bpf_ntohl(header->argument);
    header->peer = bpf_ntohs(header->peer);
    header->bitmap0 = bpf_ntohl(header->bitmap0);
    header->mask0 = bpf_ntohl(header->mask0);
    header->bitmap1 = bpf_ntohl(header->bitmap1);
    header->mask1 = bpf_ntohl(header->mask1);
}

/* `job` and `token`: as on the wire. */
static inline struct atp_xdp_job_key atp_key_on_wire(uint32_t job, uint64_t token) {
    struct atp_xdp_job_key key = {.job = bpf_ntohl(job), .zero = 0, .token = bpf_be64_to_cpu(token)};
    return key;
}

#endif
