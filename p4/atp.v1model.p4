// SPDX-License-Identifier: Apache-2.0
// A switch in the path for BMv2 (simple_switch): all of decision.p4 in one pass. The control plane admits jobs and
// fills the tables of forwarding. Only the ingress, which has one thread, accesses registers, so a packet has its
// aggregator for itself.
//
// Compile-time options: ATP_LANES (lanes.p4), ATP_PORT (parser.p4), those of frame.v1model.p4, and ATP_FIXED_CLOCK,
// with which the time is the register standing_now_us, for tests.
#include <core.p4>
#include <v1model.p4>

#define ATP_NOTES_OF_PROGRAM                                                                           \
    bit<1> overflowed; /* an element left its width */                                                 \
    bit<32> first;     /* place of the first lane of the aggregator */                                 \
    bit<16> elements;  /* lanes with elements; the others are the audit lane or proof words, and wrap */
#include "decision.p4"
#include "frame.v1model.p4"

control AtpIngress(inout headers_t headers, inout notes_t notes, inout standard_metadata_t standard_metadata) {
    // The control interface of BMv2 carries signed numbers: the token has two registers.
    register<bit<32>>(ATP_AGGREGATORS) aggregator_token_upper;
    register<bit<32>>(ATP_AGGREGATORS) aggregator_token_lower;
    register<bit<32>>(ATP_AGGREGATORS) aggregator_job;
    register<bit<32>>(ATP_AGGREGATORS) aggregator_seq;
    register<bit<16>>(ATP_AGGREGATORS) aggregator_channel;
    register<bit<8>>(ATP_AGGREGATORS) aggregator_status;
    register<bit<8>>(ATP_AGGREGATORS) aggregator_flags;
    register<bit<32>>(ATP_AGGREGATORS) aggregator_bitmap;
    register<bit<16>>(ATP_AGGREGATORS) aggregator_lanes;
    register<bit<16>>(ATP_AGGREGATORS) aggregator_purpose;
    register<bit<32>>(ATP_AGGREGATORS) aggregator_unit;
    register<bit<32>>(ATP_AGGREGATORS) aggregator_touched_us;
    register<bit<32>>(ATP_AGGREGATORS * ATP_LANES) held_lanes;
#ifdef ATP_FIXED_CLOCK
    register<bit<32>>(1) standing_now_us;
#endif
    // By events of decision.p4: those of all packets, then those of each job.
    counter(19 * (ATP_JOBS + 1), CounterType.packets) events;
    counter(1, CounterType.packets) refused;
    counter(1, CounterType.packets) forged;
    counter(1, CounterType.packets) damaged;
    counter(1, CounterType.packets) no_room;

    Check() check;
    Decide() decide;
    Forwarding() forwarding;
    TurnAround() turn_around;
    aggregator_t aggregator;
    decision_t decision;
    bit<8> level = ATP_LEVELS;
    bool is_admitted = false;
    bit<16> slot_of_job = 0;

    // ---- admission

    // `token`: that of the job. A result that goes to a group carries the number of the group instead. `slot`: of the
    // job's counters, from 1.
    action admit(bit<8> level_of_job, bit<64> token, bit<16> slot) {
        is_admitted = true;
        level = level_of_job;
        slot_of_job = slot;
        headers.atp.token = token;
    }
    action pass() {}
    table jobs {
        key = {
            headers.atp.job: exact;
            headers.atp.token: exact;
        }
        actions = {
            admit;
            pass;
        }
        default_action = pass();
        size = 1024;
    }

    // ---- the aggregator

    action load_aggregator() {
        bit<32> at = headers.atp.index;
        bit<32> upper;
        bit<32> lower;
        aggregator_token_upper.read(upper, at);
        aggregator_token_lower.read(lower, at);
        aggregator.token = upper ++ lower;
        aggregator_job.read(aggregator.job, at);
        aggregator_seq.read(aggregator.seq, at);
        aggregator_channel.read(aggregator.channel, at);
        aggregator_status.read(aggregator.status, at);
        aggregator_flags.read(aggregator.flags, at);
        aggregator_bitmap.read(aggregator.bitmap, at);
        aggregator_lanes.read(aggregator.lanes, at);
        aggregator_purpose.read(aggregator.purpose, at);
        aggregator_unit.read(aggregator.unit, at);
        aggregator_touched_us.read(aggregator.touched_us, at);
        notes.first = at * ATP_LANES;
    }
    action store_aggregator() {
        bit<32> at = headers.atp.index;
        aggregator_token_upper.write(at, aggregator.token[63:32]);
        aggregator_token_lower.write(at, aggregator.token[31:0]);
        aggregator_job.write(at, aggregator.job);
        aggregator_seq.write(at, aggregator.seq);
        aggregator_channel.write(at, aggregator.channel);
        aggregator_status.write(at, aggregator.status);
        aggregator_flags.write(at, aggregator.flags);
        aggregator_bitmap.write(at, aggregator.bitmap);
        aggregator_lanes.write(at, aggregator.lanes);
        aggregator_purpose.write(at, aggregator.purpose);
        aggregator_unit.write(at, aggregator.unit);
        aggregator_touched_us.write(at, aggregator.touched_us);
    }

    // ---- lanes. Lanes behind those of the packet are moved too: nobody reads them.

    action store_lanes() {
#define ATP_STORE_LANE(AT) held_lanes.write(notes.first + (AT), headers.lanes[AT].value);
        ATP_EACH_LANE(ATP_STORE_LANE)
    }
    action emit_lanes() {
#define ATP_EMIT_LANE(AT) held_lanes.read(headers.lanes[AT].value, notes.first + (AT));
        ATP_EACH_LANE(ATP_EMIT_LANE)
    }

    // The elements of a lane are added together, without their signs, so that no carry reaches a neighbour. Each
    // saturates alone. `high` has the sign bit of each element, and `shift` is the distance of its lowest bit. Lanes
    // behind the elements have 32 bits in every form, and wrap.
    action add_lanes(in bit<32> high, in bit<8> shift) {
        bit<32> held;
        bit<32> addend;
        bit<32> sum;
        bit<32> left;  // the sign bits of elements that left their width
        bit<32> full;  // all bits of these elements
        bit<32> any = 0;
#define ATP_ADD_LANE(AT)                                                                       \
        held_lanes.read(held, notes.first + (AT));                                             \
        addend = headers.lanes[AT].value;                                                      \
        sum = ((addend & ~high) + (held & ~high)) ^ ((addend ^ held) & high);                  \
        left = (addend ^ sum) & (held ^ sum) & high;                                           \
        full = left | (left - (left >> shift));                                                \
        sum = (sum & ~full) | ((~high + ((addend & high) >> shift)) & full);                   \
        sum = (AT) < notes.elements ? sum : addend + held;                                     \
        any = (AT) < notes.elements ? any | left : any;                                        \
        headers.lanes[AT].value = sum;                                                         \
        held_lanes.write(notes.first + (AT), sum);
        ATP_EACH_LANE(ATP_ADD_LANE)
        notes.overflowed = any == 0 ? 1w0 : 1w1;
    }

    // ---- a packet of an admitted job

    action forward_alone() {
        headers.atp.flags = headers.atp.flags | ATP_FLAG_BYPASS;
        headers.atp.hop = headers.atp.hop + 1;
        notes.changed = 1;
        decision.event = ATP_EVENT_MISFIT;
    }

    apply {
        bit<32> now_us = standard_metadata.ingress_global_timestamp[31:0];
        bool is_valid = false;
        bool handled = false;
        decision.packet = ATP_PACKET_FORWARD;
        decision.lanes = ATP_LANES_NONE;
        decision.event = ATP_EVENT_PASSED;
#ifdef ATP_FIXED_CLOCK
        standing_now_us.read(now_us, 0);
#endif
        if (notes.is_control == 1) {
            clone(CloneType.I2E, AGENT_SESSION);
        }
        if (headers.atp.isValid()) {
            check.apply(headers.atp, notes.lanes, is_valid);
            if (!is_valid) {
                refused.count(0);
            } else {
                bit<64> token = headers.atp.token;
                jobs.apply();
                if (!is_admitted) {
                    forged.count(0);
                } else if (standard_metadata.checksum_error == 1 &&
                           (headers.atp.type == ATP_TYPE_GRADIENT || headers.atp.type == ATP_TYPE_FLUSH)) {
                    damaged.count(0);
                } else {
                    bool flush_here = headers.atp.type == ATP_TYPE_FLUSH && headers.atp.hop == level;
                    bool is_gradient = headers.atp.type == ATP_TYPE_GRADIENT;
                    handled = level < ATP_LEVELS && !(is_gradient && headers.atp.hop > level);
                    if (is_gradient && headers.ipv4.ecn == ECN_CE) {
                        headers.atp.flags = headers.atp.flags | ATP_FLAG_ECN;
                        headers.ipv4.ecn = ECN_ECT0;
                        notes.changed = 1;
                    }
                    if (handled && headers.atp.index >= ATP_AGGREGATORS) {
                        if (is_gradient && headers.atp.flags & ATP_FLAG_BYPASS == 0 && headers.atp.hop < ATP_LEVELS) {
                            forward_alone();
                        } else if (flush_here) {
                            decision.packet = ATP_PACKET_DROP;
                        }
                    } else if (handled) {
                        load_aggregator();
                        bit<16> tail = headers.atp.flags & ATP_FLAG_AUDIT != 0 ? 16w1 : 16w0;
                        tail = headers.atp.flags & ATP_FLAG_PROOF != 0 ? ATP_PROOF_LANES : tail;
                        notes.elements = notes.lanes - tail;
                        if (flush_here && aggregator.lanes > ATP_ROOM_LANES) {
                            no_room.count(0);
                            decision.packet = ATP_PACKET_DROP;
                        } else {
                            decide.apply(headers.atp, notes.lanes, flush_here, aggregator, now_us, ATP_AGEING_US,
                                         decision);
                        }
                        if (is_gradient || decision.packet == ATP_PACKET_RETURN) {
                            notes.changed = 1;
                        }
                        if (decision.packet == ATP_PACKET_RETURN) {
#define ATP_GROW(AT)                                          \
    if ((AT) < ATP_ROOM_LANES && (AT) < aggregator.lanes) {   \
        headers.lanes[AT].setValid();                         \
    }
                            ATP_EACH_LANE(ATP_GROW)
                            headers.udp.bytes = headers.udp.bytes + (aggregator.lanes << 2);
                            headers.ipv4.bytes = headers.ipv4.bytes + (aggregator.lanes << 2);
                            turn_around.apply(headers);
                            standard_metadata.egress_spec = standard_metadata.ingress_port;
                        }
                        if (decision.lanes == ATP_LANES_STORE) {
                            store_lanes();
                        } else if (decision.lanes == ATP_LANES_EMIT) {
                            emit_lanes();
                        } else if (decision.lanes != ATP_LANES_NONE) {
                            bit<32> high = 0x80808080;
                            bit<8> shift = 7;
                            if (headers.atp.lanes == ATP_INT32_LANES) {
                                high = 0x80000000;
                                shift = 31;
                            } else if (headers.atp.lanes == ATP_INT16_LANES) {
                                high = 0x80008000;
                                shift = 15;
                            }
                            // One call, since the compiler copies the action for each.
                            add_lanes(high, shift);
                            if (notes.overflowed == 1) {
                                aggregator.flags = aggregator.flags | ATP_AGGREGATOR_OVERFLOW;
                                if (decision.lanes == ATP_LANES_ADD_EMIT) {
                                    headers.atp.flags = headers.atp.flags | ATP_FLAG_OVERFLOW;
                                }
                            }
                        }
                        store_aggregator();
                    }
                    events.count((bit<32>)decision.event);
                    events.count((bit<32>)slot_of_job * 19 + (bit<32>)decision.event);
                }
                headers.atp.token = token;
            }
        }
        if (decision.packet == ATP_PACKET_DROP) {
            mark_to_drop(standard_metadata);
        } else if (decision.packet == ATP_PACKET_FORWARD) {
            forwarding.apply(headers, standard_metadata);
        }
    }
}

control AtpEgress(inout headers_t headers, inout notes_t notes, inout standard_metadata_t standard_metadata) {
    apply {
        // No frame returns to the port that it came from, unless it was turned around.
        if (standard_metadata.egress_rid != 0 && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(AtpParser(), AtpVerifyChecksum(), AtpIngress(), AtpEgress(), AtpUpdateChecksum(), AtpDeparser()) main;
