// SPDX-License-Identifier: Apache-2.0
// A pipeline with one access to each register in a pass (passes.p4), for BMv2 (simple_switch): the reference on packets
// of what Tofino 1 has room for. A packet passes up to three times. Only the ingress, which has one thread, accesses
// registers.
//
// Compile-time options: ATP_LANES (lanes.p4), ATP_PORT (parser.p4), those of frame.v1model.p4; ATP_FULL_LANES, the only
// number of lanes that are added; ATP_PAIRS (pairs.p4), at least half of it. With ATP_TRACE, for tests, the time is the
// register standing_now_us, and the registers traced_... have each pass of the last packet.
#include <core.p4>
#include <v1model.p4>

// What a packet takes with it from one pass to the next.
#define ATP_NOTES_OF_PROGRAM                                                            \
    @field_list(1)                                                                      \
    bit<8> kind; /* enum atp_pass_kind */                                               \
    @field_list(1)                                                                      \
    bit<32> seen;                                                                       \
    @field_list(1)                                                                      \
    bit<9> port; /* by which it arrived */                                              \
    @field_list(1)                                                                      \
    bit<8> count; /* of its passes, for tests */                                        \
    bit<1> recirculated;
#define ATP_MARKS_JOINS
#include "frame.v1model.p4"
#include "pairs.p4"

#ifndef ATP_FULL_LANES
#define ATP_FULL_LANES ATP_LANES
#endif
#if ATP_FULL_LANES > ATP_ROOM_LANES
#error A FLUSH has no room for so many lanes
#endif

const bit<9> RECIRCULATION_PORT = 500;  // its frames never leave

// ---- registers and lanes of cells.p4. A register begins at 0 in BMv2, so it holds its value XOR its initial value.
#define ATP_AGEING ATP_AGEING_US
#define ATP_UPPER(AT) headers.lanes[2 * AT].value
#define ATP_LOWER(AT) headers.lanes[2 * AT + 1].value
#define ATP_REGISTER(TYPE, NAME, INITIAL)       \
    register<TYPE>(ATP_AGGREGATORS) NAME;       \
    const TYPE NAME##_initial = INITIAL;
#define ATP_REGISTER_OF_PAIRS(NAME)                   \
    register<bit<32>>(ATP_AGGREGATORS) NAME##_upper;  \
    register<bit<32>>(ATP_AGGREGATORS) NAME##_lower;
#define ATP_PROGRAM(TYPE, REGISTER, NAME, RESULT_TYPE, RESULT, ...)     \
    action NAME() {                                                     \
        TYPE held;                                                      \
        RESULT_TYPE result;                                             \
        REGISTER.read(held, headers.atp.index);                         \
        held = held ^ REGISTER##_initial;                               \
        __VA_ARGS__                                                     \
        RESULT = result;                                                \
        held = held ^ REGISTER##_initial;                               \
        REGISTER.write(headers.atp.index, held);                        \
    }
#define ATP_PROGRAM_OF_PAIRS(REGISTER, NAME, RESULT_TYPE, RESULT, ...)  \
    action NAME() {                                                     \
        pair_t held;                                                    \
        RESULT_TYPE result;                                             \
        REGISTER##_upper.read(held.upper, headers.atp.index);           \
        REGISTER##_lower.read(held.lower, headers.atp.index);           \
        __VA_ARGS__                                                     \
        RESULT = result;                                                \
        REGISTER##_upper.write(headers.atp.index, held.upper);          \
        REGISTER##_lower.write(headers.atp.index, held.lower);          \
    }
#include "passes.p4"

// The lanes of narrow integers pass a pipeline unadded, so the members of a JOIN that passes are told to send int32.
control MarkJoin(inout headers_t headers) {
    apply {
        if (headers.join.isValid() && headers.join.int32_path == 0) {
            headers.join.int32_path = 1;
            // It is the upper half of a word, so the sum of the words grows by 256. A checksum of 0 means none.
            if (headers.udp.checksum > 256) {
                headers.udp.checksum = headers.udp.checksum - 256;
            } else if (headers.udp.checksum != 0) {
                headers.udp.checksum = headers.udp.checksum + 0xFEFF;
            }
        }
    }
}

control AtpIngress(inout headers_t headers, inout notes_t notes, inout standard_metadata_t standard_metadata) {
    counter(19 * (ATP_JOBS + 1), CounterType.packets) events;  // as in atp.v1model.p4
    counter(1, CounterType.packets) refused;
    counter(1, CounterType.packets) forged;
    counter(1, CounterType.packets) damaged;
    counter(1, CounterType.packets) no_room;  // always 0
#ifdef ATP_TRACE
    register<bit<32>>(1) standing_now_us;
    register<bit<8>>(1) traced_passes;
    register<bit<32>>(4) traced_outcomes;  // kind, actions of packet and lanes, event
    register<bit<32>>(4) traced_seen;      // that came with the packet
#endif

    Check() check;
    MarkJoin() mark_join;
    Pass() one_pass;
    Forwarding() forwarding;
    TurnAround() turn_around;
    place_t place;
    bit<32> now;
    outcome_t outcome;
    bit<16> slot_of_job = 0;

    // ---- admission

    // `slot`: of the job's counters, from 1. A result that goes to a group carries the number of the group instead of
    // the token: it has an entry of its own.
    action admit(bit<8> stream, bit<16> slot) {
        place.stream = stream;
        slot_of_job = slot;
    }
    table streams {
        key = {
            headers.atp.job: exact;
            headers.atp.token: exact;
            headers.atp.channel: exact;
        }
        actions = {
            admit;
            NoAction;
        }
        default_action = NoAction();
        size = 256;
    }
    action serve(bit<8> number, bit<32> mask) {
        place.place = number;
        place.mask = mask;
    }
    // `unit`: one bit, or 0 for level 1.
    bit<32> unit = 0;
    table places {
        key = {
            place.stream: exact;
            headers.atp.hop: exact;
            unit: exact;
        }
        actions = {
            serve;
            NoAction;
        }
        default_action = NoAction();
        size = 2048;
    }

    // ---- outside of the registers

    action leave(bit<8> packet_action, bit<8> event) {
        outcome.packet = packet_action;
        outcome.lanes = ATP_PAIRS_NONE;
        outcome.event = event;
        outcome.next = ATP_PASS_FIRST;
        outcome.seen = 0;
    }
    action forward_alone() {
        headers.atp.flags = headers.atp.flags | ATP_FLAG_BYPASS;
        headers.atp.hop = headers.atp.hop + 1;
        leave(ATP_PACKET_FORWARD, ATP_EVENT_MISFIT);
    }
    action begin() {
        place.stream = 0;
        place.place = 0;
        place.mask = 0;
        now = standard_metadata.ingress_global_timestamp[31:0];
        leave(ATP_PACKET_FORWARD, ATP_EVENT_PASSED);
    }

    apply {
        bool is_first = notes.kind == ATP_PASS_FIRST;
        bool is_valid = false;
        begin();
        if (is_first) {
            notes.port = standard_metadata.ingress_port;
            if (notes.is_control == 1) {
                clone(CloneType.I2E, AGENT_SESSION);
            }
            mark_join.apply(headers);
        }
        if (notes.kind >= ATP_PASS_HARVEST) {
            // It has half of a sum. Nothing but its last pass lets it leave.
            outcome.packet = ATP_PACKET_DROP;
        }
#ifdef ATP_TRACE
        standing_now_us.read(now, 0);
#endif
        if (headers.atp.isValid()) {
            check.apply(headers.atp, notes.lanes, is_valid);
            if (!is_valid) {
                refused.count(0);
            } else if (!streams.apply().hit) {
                forged.count(0);
            } else if (standard_metadata.checksum_error == 1 &&
                       (headers.atp.type == ATP_TYPE_GRADIENT || headers.atp.type == ATP_TYPE_FLUSH)) {
                damaged.count(0);
            } else {
                bool is_gradient = headers.atp.type == ATP_TYPE_GRADIENT;
                unit = headers.atp.hop == 0 ? headers.atp.bitmap1 : 0;
                places.apply();
                if (is_gradient && headers.ipv4.ecn == ECN_CE) {
                    headers.atp.flags = headers.atp.flags | ATP_FLAG_ECN;
                    headers.ipv4.ecn = ECN_ECT0;
                }
                if (is_gradient) {
                    notes.changed = 1;
                }
                if (headers.atp.type == ATP_TYPE_FLUSH && notes.kind == ATP_PASS_FETCH) {
                    // It becomes a gradient, unless it is dropped. The next pass fills the lower lanes.
#define ATP_GROW(AT)                  \
    if ((AT) < ATP_FULL_LANES) {      \
        headers.lanes[AT].setValid(); \
    }
                    ATP_EACH_LANE(ATP_GROW)
                    headers.udp.bytes = headers.udp.bytes + ATP_FULL_LANES * ATP_LANE_BYTES;
                    headers.ipv4.bytes = headers.ipv4.bytes + ATP_FULL_LANES * ATP_LANE_BYTES;
                    notes.changed = 1;
                }
                if (headers.atp.index < ATP_AGGREGATORS) {
                    one_pass.apply(headers, notes.lanes, ATP_FULL_LANES, notes.kind, notes.seen, place, now,
                                   outcome);
                } else if (is_gradient && place.place != 0 && headers.atp.flags & ATP_FLAG_BYPASS == 0) {
                    forward_alone();
                } else if (headers.atp.type == ATP_TYPE_FLUSH && place.place != 0) {
                    leave(ATP_PACKET_DROP, ATP_EVENT_PASSED);
                }
                // Each packet counts once, unless its last pass came too late.
                bool counts = outcome.event != ATP_EVENT_PASSED ||
                              (is_first && outcome.packet < ATP_PIPELINE_RESUBMIT);
                if (counts) {
                    events.count((bit<32>)outcome.event);
                    events.count((bit<32>)slot_of_job * 19 + (bit<32>)outcome.event);
                }
            }
        }
#ifdef ATP_TRACE
        if (headers.atp.isValid()) {
            traced_outcomes.write((bit<32>)notes.count, notes.kind ++ outcome.packet ++ outcome.lanes ++ outcome.event);
            traced_seen.write((bit<32>)notes.count, notes.seen);
            notes.count = notes.count + 1;
            traced_passes.write(0, outcome.packet < ATP_PIPELINE_RESUBMIT ? notes.count : 8w0);
        }
#endif
        notes.kind = outcome.next;
        notes.seen = outcome.seen;
        notes.recirculated = outcome.packet == ATP_PIPELINE_RECIRCULATE ? 1w1 : 1w0;
        if (outcome.packet == ATP_PIPELINE_RESUBMIT) {
            resubmit_preserving_field_list(1);
        } else if (outcome.packet == ATP_PIPELINE_RECIRCULATE) {
            standard_metadata.egress_spec = RECIRCULATION_PORT;
        } else if (outcome.packet == ATP_PACKET_RETURN) {
            turn_around.apply(headers);
            standard_metadata.egress_spec = notes.port;
        } else if (outcome.packet == ATP_PACKET_FORWARD) {
            forwarding.apply(headers, standard_metadata);
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control AtpEgress(inout headers_t headers, inout notes_t notes, inout standard_metadata_t standard_metadata) {
    apply {
        if (notes.recirculated == 1) {
            recirculate_preserving_field_list(1);
        } else if (standard_metadata.egress_rid != 0 && standard_metadata.egress_port == notes.port) {
            // No frame returns to the port that it came from, unless it was turned around.
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(AtpParser(), AtpVerifyChecksum(), AtpIngress(), AtpEgress(), AtpUpdateChecksum(), AtpDeparser()) main;
