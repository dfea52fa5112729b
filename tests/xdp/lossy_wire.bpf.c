/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * A wire that loses packets of ATP, by a hash of how many came before: the same ones for the same seed, whatever they
 * are. Messages that build the tree, and all that is not ATP, pass.
 */
#include "xdp/types.bpf.h"

#include "xdp/frame.bpf.h"

/* Set before the program is loaded. */
const volatile uint32_t atp_loss_of_all = 0; /* probability of a loss, in units of 2^-32 */
const volatile uint32_t atp_seed = 0;

/* By type of packet. */
uint64_t atp_met[ATP_TYPE_LAST + 1] = {};
uint64_t atp_lost[ATP_TYPE_LAST + 1] = {};
uint32_t atp_turn = 0;

static inline uint32_t atp_mixed(uint32_t number) { /* the finalizer of MurmurHash3 */
    number = (number ^ number >> 16) * 0x85ebca6bu;
    number = (number ^ number >> 13) * 0xc2b2ae35u;
    return number ^ number >> 16;
}

SEC("xdp")
int atp_lossy_wire(struct xdp_md* context) {
    struct atp_frame frame = {};
    if (!atp_read_frame(context, &frame)) return XDP_PASS;
    const uint8_t* packet = (void*)(atp_datagram(context, &frame) + 1);
    if ((void*)(packet + ATP_HEADER_BYTES) > atp_end(context)) return XDP_PASS;
    uint32_t type = packet[ATP_OFFSET_TYPE];
    if (packet[ATP_OFFSET_VERSION] != ATP_VERSION || type > ATP_TYPE_LAST) return XDP_PASS;
    __sync_fetch_and_add(&atp_met[type], 1);
    if (atp_mixed(atp_seed ^ __sync_fetch_and_add(&atp_turn, 1)) >= atp_loss_of_all) return XDP_PASS;
    __sync_fetch_and_add(&atp_lost[type], 1);
    return XDP_DROP;
}

char atp_license[] SEC("license") = "GPL";
