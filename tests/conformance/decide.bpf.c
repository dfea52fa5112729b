/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * decide.h as a kernel's program would have it: no standard header, the integer names from elsewhere. Compiled by
 * check_bpf.cmake, never run.
 */
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT32_TYPE__ int32_t;
#define ATP_FREESTANDING_TYPES

#include "protocol/decide.h"

struct atp_question {
    struct atp_header packet;
    struct atp_aggregator aggregator;
    uint32_t now_us;
    uint32_t ageing_us;
    uint16_t lanes;
    uint8_t flush_here;
    uint8_t overflowed;
};

__attribute__((section("xdp"), used)) int atp_decide_bpf(struct atp_question* question) {
    struct atp_decision decision = atp_decide(&question->packet, question->lanes, question->flush_here,
                                              &question->aggregator, question->now_us, question->ageing_us);
    if (question->overflowed) atp_overflowed(&question->packet, decision, &question->aggregator);
    return decision.packet | decision.lanes << 8 | decision.event << 16;
}
