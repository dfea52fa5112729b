/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Type names of a kernel program, in the order in which its headers need one another. */
#ifndef ATP_XDP_TYPES_BPF_H
#define ATP_XDP_TYPES_BPF_H

#include <linux/types.h>

typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __u64 uint64_t;
typedef __s32 int32_t;
typedef __s64 int64_t;
#define ATP_FREESTANDING_TYPES

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* No call is allowed under a lock: inline functions of headers shared with user space must be inlined. */
#define inline __inline __attribute__((always_inline))

#endif
