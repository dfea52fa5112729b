/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Values of the maps that link_fault.bpf.c and link_fault.cc share. Freestanding C. */
#ifndef ATP_BENCH_LINK_FAULT_H
#define ATP_BENCH_LINK_FAULT_H

#ifndef ATP_FREESTANDING_TYPES
#include <stdint.h>
#endif

#define ATP_LINK_FAULT_ONE (1ull << 32) /* a share of 1 */
#define ATP_LINK_SLOW_CLASS 0x41540002u /* class 4154:2 of the qdisc htb, in which frames wait */

/* What to do with the frames that leave an interface. */
struct atp_link_fault {
    uint64_t loss;       /* share of the frames that are lost, of ATP_LINK_FAULT_ONE */
    uint64_t duplicates; /* share of the frames that are sent twice, of ATP_LINK_FAULT_ONE */
    uint64_t delays;     /* share of the frames that wait in the slow class, of ATP_LINK_FAULT_ONE */
    uint64_t mark_bps;   /* rate of the virtual queue in bit/s; 0: no marks */
    uint64_t mark_bytes; /* length of the virtual queue above which packets are marked, at most 10^9 */
    uint32_t longest;    /* length of the longest IP packet that passes, in bytes; 0: any length */
    uint32_t cut;        /* 1: no frame passes */
    uint32_t seed;       /* of the choice of lost, duplicated and delayed frames */
    uint32_t unused;
};

/* Counts since the program was attached. All but `bytes` and `merged` are numbers of frames. */
struct atp_link_counts {
    uint64_t frames; /* that came to the interface; copies do not count */
    uint64_t bytes;  /* of these frames, with Ethernet headers */
    uint64_t merged; /* packets of several frames, as segmentation offloads make them; each has one fate */
    uint64_t cut;
    uint64_t too_long;
    uint64_t lost; /* by chance */
    uint64_t marked;
    uint64_t duplicated;
    uint64_t delayed;
    uint64_t turn; /* number of decisions by chance */
};

#endif
