/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What a switch in the path may send as copies of results (docs/spec/switch.md#copies-in-the-path). A job's credit is
 * the bytes of its gradients and JOINs that arrived, and copies spend it, so they are never more traffic than what
 * arrived, even if all members were made up.
 *
 * A job whose gradients were added before they came here cannot pay for each result, and the switch that added them
 * copies instead. Once such a job lacks credit for a result, it gets no copies for a minute, not even of JOINED, so its
 * members learn that the server has to send to each.
 *
 * Freestanding C, as decide.h. Processors may call at the same time: two of them may overdraw the credit once.
 *
 * Ownership: the caller owns the credit, which begins as zeros.
 */
#ifndef ATP_PROTOCOL_COPY_CREDIT_H
#define ATP_PROTOCOL_COPY_CREDIT_H

#include "wire/format.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

/* More than the gradients of a window of 32 members. */
#define ATP_COPY_CREDIT_MOST (32 << 20)
#define ATP_COPY_CREDIT_PAUSE_NS 60000000000ull

struct atp_copy_credit {
    int64_t bytes;
    uint64_t copied;       /* bytes of copies */
    uint64_t uncopied;     /* packets for all members that were not copied */
    uint64_t paused_until; /* in ns: no copies until then */
};

static inline void atp_copy_credit_add(struct atp_copy_credit* credit, uint64_t bytes) {
    if (*(const volatile int64_t*)&credit->bytes > ATP_COPY_CREDIT_MOST) return;
    __sync_fetch_and_add(&credit->bytes, (int64_t)bytes);
}

/* True if the job pays for copies of these bytes together. */
static inline int atp_copy_credit_spend(struct atp_copy_credit* credit, uint64_t bytes, int is_result,
                                        uint64_t now_ns) {
    if (now_ns < *(const volatile uint64_t*)&credit->paused_until) return 0;
    if (*(const volatile int64_t*)&credit->bytes < (int64_t)bytes) {
        if (is_result) credit->paused_until = now_ns + ATP_COPY_CREDIT_PAUSE_NS;
        __sync_fetch_and_add(&credit->uncopied, 1);
        return 0;
    }
    __sync_fetch_and_add(&credit->bytes, -(int64_t)bytes);
    __sync_fetch_and_add(&credit->copied, bytes);
    return 1;
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
