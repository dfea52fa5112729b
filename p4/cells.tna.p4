// SPDX-License-Identifier: Apache-2.0
// The registers of a pipeline (protocol/pipeline_cells.h) for Tofino 1, with their programs, and the way of a packet
// through them: one access to each register in a pass. It shows what a pipe has room for. It is no switch: the agent
// has no driver for it, and the tables that say which program runs in which case are empty.
//
// Compile-time options: ATP_AGGREGATORS and ATP_PAIRS (pairs.p4).
#include <core.p4>
#include <tna.p4>

#include "headers.p4"
#include "pairs.p4"
#include "pass_constants.p4"

#ifndef ATP_AGGREGATORS
#define ATP_AGGREGATORS 4096
#endif
#define ATP_PORT 4790

// In front of a packet that passes again.
header again_t {
    bit<8> kind;  // enum atp_pass_kind
    bit<24> unused;
    bit<32> seen;
}

#define ATP_FIELDS_OF_PAIR(AT) \
    bit<32> upper##AT;         \
    bit<32> lower##AT;
header lanes_t {
    ATP_EACH_PAIR(ATP_FIELDS_OF_PAIR)
}

struct ingress_headers_t {
    again_t again;
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    atp_t atp;
    lanes_t lanes;
}

parser AtpIngressParser(packet_in packet, out ingress_headers_t headers, out pass_t pass,
                        out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        pass.kind = 0;
        pass.work = 0;
        pass.stream = 0;
        pass.place = 0;
        pass.mask = 0;
        pass.mine = 0;
        pass.expected = 0;
        pass.next = 0;
        pass.body = 0;
        pass.bit_of_set = 0;
        pass.marks_of_packet = 0;
        pass.marks = 0;
        pass.late = 0;
        pass.tag = 0;
        pass.before = 0;
        pass.after = 0;
        pass.aged = 0;
        pass.lanes_work = 0;
        pass.now = 0;
        transition select(intrinsic.resubmit_flag) {
            1: resubmitted;
            default: arrived;
        }
    }
    // 64 bits of resubmission.
    state resubmitted {
        packet.extract(headers.again);
        transition ethernet;
    }
    state arrived {
        packet.advance(PORT_METADATA_SIZE);
        transition select(intrinsic.ingress_port) {
            68: recirculated;
            default: ethernet;
        }
    }
    state recirculated {
        packet.extract(headers.again);
        transition ethernet;
    }
    state ethernet {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            ETHERNET_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition select(headers.ipv4.version, headers.ipv4.header_words, headers.ipv4.fragment,
                          headers.ipv4.protocol) {
            (4, 5, 0, IPV4_UDP): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(headers.udp);
        transition select(headers.udp.destination) {
            ATP_PORT: atp;
            default: accept;
        }
    }
    state atp {
        packet.extract(headers.atp);
        transition select(headers.atp.type, headers.atp.lanes, headers.udp.bytes) {
            (ATP_TYPE_GRADIENT, ATP_INT32_LANES, 8 + 56 + ATP_PAIRS * 8): lanes;
            default: accept;
        }
    }
    state lanes {
        packet.extract(headers.lanes);
        transition accept;
    }
}

control AtpIngress(inout ingress_headers_t headers, inout pass_t pass,
                   in ingress_intrinsic_metadata_t intrinsic,
                   in ingress_intrinsic_metadata_from_parser_t from_parser,
                   inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                   inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    // The registers of cells.p4. The ageing time is 2^19 units of 1.024 microseconds.
#define ATP_AGEING 524288
#define ATP_UPPER(AT) headers.lanes.upper##AT
#define ATP_LOWER(AT) headers.lanes.lower##AT
#define ATP_REGISTER(TYPE, NAME, INITIAL) Register<TYPE, bit<32>>(ATP_AGGREGATORS, INITIAL) NAME;
#define ATP_REGISTER_OF_PAIRS(NAME) Register<pair_t, bit<32>>(ATP_AGGREGATORS) NAME;
#define ATP_PROGRAM(TYPE, REGISTER, NAME, RESULT_TYPE, RESULT, ...)                \
    RegisterAction<TYPE, bit<32>, RESULT_TYPE>(REGISTER) NAME##_program = {        \
        void apply(inout TYPE held, out RESULT_TYPE result) { __VA_ARGS__ }        \
    };                                                                             \
    action NAME() { RESULT = NAME##_program.execute(headers.atp.index); }
#define ATP_PROGRAM_OF_PAIRS(REGISTER, NAME, RESULT_TYPE, RESULT, ...)             \
    ATP_PROGRAM(pair_t, REGISTER, NAME, RESULT_TYPE, RESULT, __VA_ARGS__)
#include "cells.p4"

    // A table that does nothing unless an entry names one of the actions.
#define ATP_TABLE(NAME, SIZE, KEYS, ACTIONS)                                                                 \
    table NAME {                                                                                             \
        key = { KEYS }                                                                                       \
        actions = { ACTIONS @defaultonly NoAction; }                                                         \
        default_action = NoAction();                                                                         \
        size = SIZE;                                                                                         \
    }

    // ---- stage 0: what the control plane admitted

    action admit(bit<8> stream) {
        pass.stream = stream;
        pass.mine = 2w0 ++ stream[6:0] ++ headers.atp.seq[22:0];
    }
    ATP_TABLE(streams, 128, headers.atp.job: exact; headers.atp.token: exact; headers.atp.channel: exact;, admit;)
    // `shape`: of `body`, without purpose.
    action serve(bit<16> shape, bit<32> mask) {
        pass.body = headers.atp.argument[15:0] ++ shape;
        pass.mask = mask;
        pass.place = 1;
    }
    ATP_TABLE(places, 512,
              headers.atp.job: exact; headers.atp.token: exact; headers.atp.channel: exact; headers.atp.hop: exact;
              headers.atp.bitmap1: ternary; headers.atp.flags: ternary; headers.atp.seq[31:23]: ternary;,
              serve;)
    action want(bit<8> work, bit<8> kind) {
        pass.work = work;
        pass.kind = kind;
        pass.marks_of_packet = headers.atp.flags & (ATP_FLAG_ECN | ATP_FLAG_OVERFLOW | ATP_FLAG_ECN_DOWN);
        pass.now = from_parser.global_tstamp[41:10];
    }
    ATP_TABLE(wants, 64,
              headers.atp.type: exact; headers.atp.flags: ternary; headers.atp.hop: ternary;
              headers.again.isValid(): exact; headers.again.kind: ternary;,
              want;)

    // ---- stage 1: the tombstone, and what a swap of tags expects

    ATP_TABLE(tombs, 16, pass.work: exact;, tomb_is; tomb_write;)
    action expect_mine(bit<32> next_or) {
        pass.expected = pass.mine;
        pass.next = pass.mine | next_or;
    }
    action expect_leaving() {
        pass.expected = pass.mine | ATP_TAG_LEAVING;
        pass.next = ATP_TAG_FREE;
    }
    action expect_seen_claim() {
        pass.expected = headers.again.seen;
        pass.next = pass.mine;
    }
    action expect_seen_free() {
        pass.expected = headers.again.seen;
        pass.next = ATP_TAG_FREE;
    }
    ATP_TABLE(expectations, 16, pass.work: exact;, expect_mine; expect_leaving; expect_seen_claim; expect_seen_free;)
    action contribute0() {
        pass.bit_of_set = headers.atp.bitmap0;
    }
    action contribute1() {
        pass.bit_of_set = headers.atp.bitmap1;
    }
    ATP_TABLE(contributions, 2, headers.atp.hop: exact;, contribute0; contribute1;)

    // ---- stage 2: the tag

    ATP_TABLE(tags, 32, pass.work: exact; pass.late: exact;, tag_claim; tag_swap;)

    // ---- stage 3: shape and bitmap, time, marks

    ATP_TABLE(bodies, 64, pass.work: exact; pass.tag: ternary;, body_write; body_gather; body_read;)
    ATP_TABLE(times, 64, pass.work: exact; pass.tag: ternary;, time_touch; time_is_aged;)
    ATP_TABLE(marks_of, 64, pass.work: exact; pass.tag: ternary;, mark_write; mark_add;)

    // ---- stages 4 to 11: lanes. `sets` decides for the lanes from stage 5 on, and the first lanes decide by the same rule.

    action gathered(bit<8> lanes_work) {
        pass.after = pass.before | pass.bit_of_set;
        pass.lanes_work = lanes_work;
    }
    ATP_TABLE(sets, 512, pass.work: exact; pass.tag: ternary; pass.before: ternary; pass.bit_of_set: ternary;,
              gathered;)

#define ATP_PROGRAMS_OF_PAIR(AT) store##AT; add##AT; emit_upper##AT; emit_lower##AT;
#define ATP_FIRST_PAIR(AT)                                                                                   \
    ATP_TABLE(lanes##AT, 512, pass.work: exact; pass.tag: ternary; pass.before: ternary;                     \
              pass.bit_of_set: ternary;, ATP_PROGRAMS_OF_PAIR(AT))
#define ATP_LATER_PAIR(AT) ATP_TABLE(lanes##AT, 8, pass.lanes_work: exact;, ATP_PROGRAMS_OF_PAIR(AT))
    ATP_FIRST_PAIRS(ATP_FIRST_PAIR)
    ATP_LATER_PAIRS(ATP_LATER_PAIR)

    // ---- what becomes of the packet

    action absorb() {
        for_deparser.drop_ctl = 1;
    }
    action forward(PortId_t port) {
        for_tm.ucast_egress_port = port;
        headers.again.setInvalid();
        headers.atp.hop = headers.atp.hop + 1;
    }
    action forward_alone(PortId_t port) {
        for_tm.ucast_egress_port = port;
        headers.again.setInvalid();
        headers.atp.flags = headers.atp.flags | ATP_FLAG_BYPASS;
    }
    action resubmit_claim() {
        for_deparser.resubmit_type = 1;
        pass.kind = 1;
    }
    action recirculate0(bit<8> kind) {
        for_tm.ucast_egress_port = 68;
        headers.again.setValid();
        headers.again.kind = kind;
        headers.atp.bitmap0 = pass.after;
        headers.atp.flags = headers.atp.flags | pass.marks;
    }
    action recirculate1(bit<8> kind) {
        for_tm.ucast_egress_port = 68;
        headers.again.setValid();
        headers.again.kind = kind;
        headers.atp.bitmap1 = pass.after;
        headers.atp.flags = headers.atp.flags | pass.marks;
    }
    ATP_TABLE(fates, 128,
              pass.work: exact; pass.late: exact; pass.aged: exact; pass.lanes_work: exact; pass.before: ternary;,
              absorb; forward; forward_alone; resubmit_claim; recirculate0; recirculate1;)

#define ATP_APPLY_PAIR(AT) lanes##AT.apply();
    apply {
        if (headers.atp.isValid()) {
            streams.apply();
            places.apply();
            wants.apply();
            tombs.apply();
            expectations.apply();
            contributions.apply();
            tags.apply();
            bodies.apply();
            times.apply();
            marks_of.apply();
            sets.apply();
            ATP_EACH_PAIR(ATP_APPLY_PAIR)
            fates.apply();
        }
    }
}

control AtpIngressDeparser(packet_out packet, inout ingress_headers_t headers, in pass_t pass,
                           in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Resubmit() resubmit;
    apply {
        if (for_deparser.resubmit_type == 1) {
            resubmit.emit<again_t>({pass.kind, 0, pass.tag});
        }
        packet.emit(headers);
    }
}

struct egress_headers_t {}
struct egress_notes_t {}

parser AtpEgressParser(packet_in packet, out egress_headers_t headers, out egress_notes_t notes,
                       out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        transition accept;
    }
}

control AtpEgress(inout egress_headers_t headers, inout egress_notes_t notes, in egress_intrinsic_metadata_t intrinsic,
                  in egress_intrinsic_metadata_from_parser_t from_parser,
                  inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                  inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply {}
}

control AtpEgressDeparser(packet_out packet, inout egress_headers_t headers, in egress_notes_t notes,
                          in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(headers);
    }
}

Pipeline(AtpIngressParser(), AtpIngress(), AtpIngressDeparser(), AtpEgressParser(), AtpEgress(), AtpEgressDeparser())
    pipe;
Switch(pipe) main;
