/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Whether a job may claim a further aggregator (docs/spec/switch.md#shares). Freestanding C, like decide.h.
 *
 * Ownership: the caller owns the shares of its jobs.
 * Calling order: for a packet that names an aggregator, atp_beyond_share() and atp_would_claim(): if both are true, the
 *   packet passes without an aggregator. Otherwise atp_decide(), then atp_count_share() with its event.
 */
#ifndef ATP_PROTOCOL_SHARE_H
#define ATP_PROTOCOL_SHARE_H

#include "protocol/decide.h"

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* C has no other */
#endif

/*
 * Aggregators that a job holds, as its switch counts them. A job is in the way while, within the last ageing time, a
 * gradient of another job met one of its aggregators.
 */
struct atp_share {
    uint32_t held;
    uint32_t met_us; /* when that was last, if `met` */
    uint8_t met;
};

/* True if the job is in the way of others and holds `most` aggregators or more; 0: it may hold any number. */
static inline int atp_beyond_share(const struct atp_share* share, uint32_t most, uint32_t now_us, uint32_t ageing_us) {
    return most != 0 && share->held >= most && share->met && now_us - share->met_us <= ageing_us;
}

/* True if the job of the packet would hold an aggregator more. */
static inline int atp_would_claim(struct atp_header packet, uint16_t lanes, struct atp_aggregator aggregator,
                                  uint32_t now_us, uint32_t ageing_us) {
    uint8_t event = atp_decide(&packet, lanes, 0, &aggregator, now_us, ageing_us).event;
    return event == ATP_EVENT_CLAIMED || event == ATP_EVENT_TAKEN_OVER;
}

static inline void atp_give_back(struct atp_share* share) {
    if (share->held != 0) --share->held; /* its counting began after a restart, or after the job came back */
}

static inline int atp_needs_holder(uint8_t event) {
    return event == ATP_EVENT_COLLIDED || event == ATP_EVENT_TAKEN_OVER || event == ATP_EVENT_EXPIRED;
}

/* `own`: of the packet's job. `holder`: of the job that held the aggregator before; NULL: none that is admitted. */
static inline void atp_count_share(uint8_t event, struct atp_share* own, struct atp_share* holder, uint32_t now_us) {
    if ((event == ATP_EVENT_TAKEN_OVER || event == ATP_EVENT_EXPIRED) && holder) atp_give_back(holder);
    if (event == ATP_EVENT_CLAIMED || event == ATP_EVENT_TAKEN_OVER) ++own->held;
    if (event == ATP_EVENT_RELEASED || event == ATP_EVENT_FETCHED || event == ATP_EVENT_FLUSHED) atp_give_back(own);
    if (event == ATP_EVENT_COLLIDED && holder && holder != own) {
        holder->met = 1;
        holder->met_us = now_us;
    }
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
