// SPDX-License-Identifier: Apache-2.0
// The decision of a switch, all of atp_decide() in one pass: src/machines/protocol/decide.h, whose names and order this
// file keeps. docs/spec/switch.md is normative.
#ifndef ATP_DECISION_P4
#define ATP_DECISION_P4

#include "actions.p4"
#include "parser.p4"

// enum atp_aggregator_status
const bit<8> ATP_AGGREGATOR_FREE = 0;
const bit<8> ATP_AGGREGATOR_GATHERING = 1;
const bit<8> ATP_AGGREGATOR_COMPLETE = 2;

// enum atp_aggregator_flag
const bit<8> ATP_AGGREGATOR_INT16 = 1;
const bit<8> ATP_AGGREGATOR_INT8 = 2;
const bit<8> ATP_AGGREGATOR_PROOF = 4;
const bit<8> ATP_AGGREGATOR_ECN = 8;
const bit<8> ATP_AGGREGATOR_OVERFLOW = 16;
const bit<8> ATP_AGGREGATOR_ECN_DOWN = 32;
const bit<8> ATP_AGGREGATOR_AUDIT = 64;
const bit<8> ATP_AGGREGATOR_PLAIN = 128;
const bit<8> ATP_AGGREGATOR_MARKS = 8 | 16 | 32;
const bit<8> ATP_AGGREGATOR_KIND = 1 | 2 | 4 | 64 | 128;
// Flags of a packet that have the same bit in an aggregator.
const bit<8> ATP_FLAGS_ALIKE = 8 | 16 | 64 | 128;

// enum atp_lanes_action
const bit<8> ATP_LANES_NONE = 0;
const bit<8> ATP_LANES_STORE = 1;
const bit<8> ATP_LANES_ADD = 2;
const bit<8> ATP_LANES_ADD_EMIT = 3;
const bit<8> ATP_LANES_EMIT = 4;

struct aggregator_t {
    bit<64> token;
    bit<32> job;
    bit<32> seq;
    bit<16> channel;
    bit<8> status;
    bit<8> flags;
    bit<32> bitmap;
    bit<16> lanes;
    bit<16> purpose;
    bit<32> unit;
    bit<32> touched_us;
}

struct decision_t {
    bit<8> packet;
    bit<8> lanes;
    bit<8> event;
}

control Decide(inout atp_t packet, in bit<16> lanes, in bool flush_here, inout aggregator_t aggregator,
               in bit<32> now_us, in bit<32> ageing_us, out decision_t decision) {
    action decide(bit<8> packet_action, bit<8> lanes_action, bit<8> event) {
        decision.packet = packet_action;
        decision.lanes = lanes_action;
        decision.event = event;
    }
    // Forwards to the server, past the next level.
    action forward_alone(bit<8> event) {
        packet.flags = packet.flags | ATP_FLAG_BYPASS;
        packet.hop = packet.hop + 1;
        decide(ATP_PACKET_FORWARD, ATP_LANES_NONE, event);
    }
    action collide() {
        packet.flags = packet.flags | ATP_FLAG_COLLISION;
        forward_alone(ATP_EVENT_COLLIDED);
    }
    action pass_on(bit<8> event) {
        packet.hop = packet.hop + 1;
        decide(ATP_PACKET_FORWARD, ATP_LANES_NONE, event);
    }
    action remember() {
        aggregator.job = packet.job;
        aggregator.token = packet.token;
        aggregator.seq = packet.seq;
        aggregator.channel = packet.channel;
    }
    action claim(bit<32> unit, bit<32> mine, bit<8> flags, bit<8> event) {
        remember();
        aggregator.status = ATP_AGGREGATOR_GATHERING;
        aggregator.unit = unit;
        aggregator.bitmap = mine;
        aggregator.lanes = lanes;
        aggregator.purpose = packet.argument[15:0];
        aggregator.flags = flags;
        aggregator.touched_us = now_us;
        decide(ATP_PACKET_DROP, ATP_LANES_STORE, event);
    }
    // The packet takes the set and the marks of the aggregator.
    action load() {
        bit<8> marks = aggregator.flags & ATP_AGGREGATOR_MARKS;
        bit<16> flags = 8w0 ++ (marks & ATP_FLAGS_ALIKE);
        flags = flags | (8w0 ++ (marks & ATP_AGGREGATOR_ECN_DOWN)) << 5;
        packet.flags = packet.flags | flags | (packet.hop == 0 ? 16w0 : ATP_FLAG_WHOLE);
        packet.bitmap0 = packet.hop == 0 ? aggregator.bitmap : packet.bitmap0;
        packet.bitmap1 = packet.hop == 0 ? packet.bitmap1 : aggregator.bitmap;
        packet.hop = packet.hop + 1;
    }
    // A FLUSH becomes a gradient.
    action turn_around() {
        bit<8> kind = aggregator.flags & ATP_AGGREGATOR_KIND;
        bit<16> flags = 8w0 ++ (kind & ATP_FLAGS_ALIKE);
        flags = flags | (8w0 ++ (kind & ATP_AGGREGATOR_PROOF)) << 9;
        packet.type = ATP_TYPE_GRADIENT;
        packet.lanes = aggregator.flags & ATP_AGGREGATOR_INT16 != 0 ? ATP_INT16_LANES : ATP_INT32_LANES;
        packet.lanes = aggregator.flags & ATP_AGGREGATOR_INT8 != 0 ? ATP_INT8_LANES : packet.lanes;
        packet.flags = ATP_FLAG_BYPASS | flags;
        packet.worker = ATP_WORKER_ALL;
        packet.argument = 16w0 ++ aggregator.purpose;
    }

    apply {
        bool is_level_0 = packet.hop == 0;
        bool is_free = aggregator.status == ATP_AGGREGATOR_FREE;
        bool same_stream = packet.job == aggregator.job && packet.token == aggregator.token &&
                           packet.channel == aggregator.channel;
        bool same = same_stream && packet.seq == aggregator.seq;
        bit<32> ahead = packet.seq - aggregator.seq;
        bool supersedes = same_stream && ahead[31:31] == 0 && ahead >= 32w1 << packet.window_log2;
        bit<32> idle_us = now_us - aggregator.touched_us;
        bool abandoned = idle_us[31:31] == 0 && idle_us > ageing_us;
        bit<32> unit = is_level_0 ? packet.bitmap1 : 0;
        bit<32> mine = is_level_0 ? packet.bitmap0 : packet.bitmap1;
        bit<32> mask = is_level_0 ? packet.mask0 : packet.mask1;
        bit<8> flags = packet.flags[7:0] & ATP_FLAGS_ALIKE;
        flags = flags | (packet.flags & ATP_FLAG_ECN_DOWN != 0 ? ATP_AGGREGATOR_ECN_DOWN : 0);
        flags = flags | (packet.flags & ATP_FLAG_PROOF != 0 ? ATP_AGGREGATOR_PROOF : 0);
        flags = flags | (packet.lanes == ATP_INT16_LANES ? ATP_AGGREGATOR_INT16 : 0);
        flags = flags | (packet.lanes == ATP_INT8_LANES ? ATP_AGGREGATOR_INT8 : 0);
        bool fits_level = is_level_0 ? packet.bitmap0 != 0
                                     : packet.bitmap1 != 0 && (packet.flags & ATP_FLAG_WHOLE != 0 ||
                                                               packet.bitmap0 == packet.mask0);
        bool same_shape = aggregator.unit == unit && aggregator.lanes == lanes &&
                          aggregator.purpose == packet.argument[15:0] &&
                          (aggregator.flags ^ flags) & ATP_AGGREGATOR_KIND == 0 && aggregator.bitmap & ~mask == 0;
        bool has_own_form = packet.lanes[7:4] == packet.lanes[3:0];
        bool is_release = packet.type == ATP_TYPE_ACK ||
                          (packet.type == ATP_TYPE_NACK && packet.flags & ATP_FLAG_BYPASS != 0);
        decide(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_PASSED);
        if (packet.type == ATP_TYPE_GRADIENT) {
            if (packet.flags & ATP_FLAG_BYPASS != 0 || packet.hop >= ATP_LEVELS) {
                decide(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_BYPASSED);
            } else if (!has_own_form) {
                forward_alone(ATP_EVENT_MISFIT);
            } else if (packet.flags & ATP_FLAG_RESEND != 0) {
                if (!same || is_free || !is_level_0 || !same_shape) {
                    if (is_free) {
                        remember();
                    }
                    pass_on(ATP_EVENT_RESENT);
                } else if (aggregator.bitmap & mine != 0 && aggregator.bitmap & mine != mine) {
                    forward_alone(ATP_EVENT_MISFIT);
                } else {
                    decide(ATP_PACKET_FORWARD, aggregator.bitmap & mine != 0 ? ATP_LANES_EMIT : ATP_LANES_ADD_EMIT,
                           ATP_EVENT_FETCHED);
                    aggregator.bitmap = aggregator.bitmap | mine;
                    aggregator.flags = aggregator.flags | (flags & ATP_AGGREGATOR_MARKS);
                    load();
                    aggregator.status = ATP_AGGREGATOR_FREE;
                }
            } else if (!fits_level) {
                forward_alone(ATP_EVENT_MISFIT);
            } else if (mine == mask) {
                pass_on(ATP_EVENT_SINGLE);
            } else if (is_free) {
                if (same) {
                    forward_alone(ATP_EVENT_LATE);
                } else {
                    claim(unit, mine, flags, ATP_EVENT_CLAIMED);
                }
            } else if (same) {
                if (!same_shape) {
                    forward_alone(ATP_EVENT_MISFIT);
                } else if (aggregator.bitmap & mine == mine) {
                    aggregator.flags = aggregator.flags |
                                       (flags & (ATP_AGGREGATOR_ECN | ATP_AGGREGATOR_ECN_DOWN));
                    if (aggregator.status != ATP_AGGREGATOR_COMPLETE) {
                        decide(ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_DUPLICATE);
                    } else {
                        load();
                        decide(ATP_PACKET_FORWARD, ATP_LANES_EMIT, ATP_EVENT_REEMITTED);
                    }
                } else if (aggregator.bitmap & mine != 0) {
                    forward_alone(ATP_EVENT_MISFIT);
                } else {
                    aggregator.bitmap = aggregator.bitmap | mine;
                    aggregator.touched_us = now_us;
                    aggregator.flags = aggregator.flags | (flags & ATP_AGGREGATOR_MARKS);
                    decide(ATP_PACKET_DROP, ATP_LANES_ADD, ATP_EVENT_ADDED);
                    if (aggregator.bitmap == mask) {
                        aggregator.status = ATP_AGGREGATOR_COMPLETE;
                        load();
                        decide(ATP_PACKET_FORWARD, ATP_LANES_ADD_EMIT, ATP_EVENT_COMPLETED);
                    }
                }
            } else if (supersedes) {
                claim(unit, mine, flags, ATP_EVENT_SUPERSEDED);
            } else if (abandoned) {
                claim(unit, mine, flags, ATP_EVENT_TAKEN_OVER);
            } else {
                collide();
            }
        } else if (is_release) {
            if (is_free) {
                if (packet.type == ATP_TYPE_NACK) {
                    remember();
                    decide(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_CLOSED);
                }
            } else if (same) {
                aggregator.status = ATP_AGGREGATOR_FREE;
                decide(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_RELEASED);
            } else if (abandoned) {
                aggregator.status = ATP_AGGREGATOR_FREE;
                decide(ATP_PACKET_FORWARD, ATP_LANES_NONE, ATP_EVENT_EXPIRED);
            }
        } else if (packet.type == ATP_TYPE_FLUSH && flush_here) {
            if (is_free) {
                remember();
                decide(ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_CLOSED);
            } else if (!same || (is_level_0 && packet.bitmap1 == 0) || aggregator.unit != unit ||
                       aggregator.bitmap & ~mask != 0) {
                decide(ATP_PACKET_DROP, ATP_LANES_NONE, ATP_EVENT_PASSED);
            } else {
                turn_around();
                load();
                aggregator.status = ATP_AGGREGATOR_FREE;
                decide(ATP_PACKET_RETURN, ATP_LANES_EMIT, ATP_EVENT_FLUSHED);
            }
        }
    }
}

#endif
