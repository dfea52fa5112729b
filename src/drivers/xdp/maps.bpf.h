/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Maps that the kernel switch and user space share (xdp/layout.h): aggregators, jobs, slices, counters, members and
   credit of copies, ports, control messages.
   kernel_table.cc sets each max_entries of 1 before it loads them. */
#ifndef ATP_XDP_MAPS_BPF_H
#define ATP_XDP_MAPS_BPF_H

#include "xdp/types.bpf.h"

#include "protocol/decide.h"
#include "xdp/layout.h"

struct atp_locked_aggregator {
    struct bpf_spin_lock lock;
    uint32_t unused;
    struct atp_aggregator state;
    uint64_t pairs[ATP_XDP_PAIRS];
};
_Static_assert(sizeof(struct atp_locked_aggregator) == sizeof(struct atp_xdp_aggregator), "user space reads it");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, uint32_t);
    __type(value, struct atp_locked_aggregator);
    __uint(max_entries, 1);
} atp_aggregators SEC(".maps");

struct atp_locked_slice {
    struct bpf_spin_lock lock;
    uint32_t unused;
    struct atp_slice state;
};
_Static_assert(sizeof(struct atp_locked_slice) == sizeof(struct atp_xdp_slice), "user space reads it");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, uint32_t);
    __type(value, struct atp_locked_slice);
    __uint(max_entries, 1);
} atp_slices SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __type(key, struct atp_xdp_job_key);
    __type(value, struct atp_xdp_job);
    __uint(max_entries, 1);
} atp_jobs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __type(key, uint32_t);
    __type(value, struct atp_xdp_counters);
    __uint(max_entries, 1);
} atp_counters SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct atp_xdp_job_key); /* with the group number of a channel */
    __type(value, struct atp_xdp_members);
    __uint(max_entries, 1);
} atp_members SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, uint32_t);
    __type(value, struct atp_xdp_credit);
    __uint(max_entries, 1);
} atp_credits SEC(".maps");

struct atp_locked_port {
    struct bpf_spin_lock lock;
    uint32_t bytes_per_frame;
    struct atp_shared_queue queue;
    uint64_t marked;
};
_Static_assert(sizeof(struct atp_locked_port) == sizeof(struct atp_xdp_port), "user space writes it");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __type(key, uint32_t);
    __type(value, struct atp_locked_port);
    __uint(max_entries, ATP_XDP_PORTS);
} atp_ports SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, ATP_XDP_MESSAGE_QUEUE_BYTES);
} atp_message_queue SEC(".maps");

#endif
