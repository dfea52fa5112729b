// SPDX-License-Identifier: Apache-2.0
// The registers of a pipeline (protocol/pipeline_cells.h) for Tofino 1, with their programs, and the way of a packet
// through them: one access to each register in a pass. It shows what a pipe has room for. It is no switch: the agent has
// no driver for it, and the tables that say which program runs in which case are empty.
//
// Compile-time options: ATP_AGGREGATORS, and ATP_PAIRS, the number of pairs of lanes.
#include <core.p4>
#include <tna.p4>

#include "headers.p4"

#ifndef ATP_AGGREGATORS
#define ATP_AGGREGATORS 4096
#endif
#ifndef ATP_PAIRS
#define ATP_PAIRS 31
#endif
#define ATP_PORT 4790

// Two registers of one width that are accessed together.
struct pair_t {
    bit<32> upper;
    bit<32> lower;
}

// In front of a packet that passes again.
header again_t {
    bit<8> kind;  // enum atp_pass_kind
    bit<24> unused;
    bit<32> seen;
}

// WORK(number), once for each pair of lanes. The first three are in the stage of `after`, the others in seven stages.
#define ATP_FIRST_PAIRS(WORK) WORK(0) WORK(1) WORK(2)
#define ATP_PAIRS_4(WORK) WORK(3) WORK(4) WORK(5) WORK(6)
#define ATP_PAIRS_8(WORK) ATP_PAIRS_4(WORK) WORK(7) WORK(8) WORK(9) WORK(10)
#define ATP_PAIRS_12(WORK) ATP_PAIRS_8(WORK) WORK(11) WORK(12) WORK(13) WORK(14)
#define ATP_PAIRS_16(WORK) ATP_PAIRS_12(WORK) WORK(15) WORK(16) WORK(17) WORK(18)
#define ATP_PAIRS_20(WORK) ATP_PAIRS_16(WORK) WORK(19) WORK(20) WORK(21) WORK(22)
#define ATP_PAIRS_24(WORK) ATP_PAIRS_20(WORK) WORK(23) WORK(24) WORK(25) WORK(26)
#define ATP_PAIRS_28(WORK) ATP_PAIRS_24(WORK) WORK(27) WORK(28) WORK(29) WORK(30)
#if ATP_PAIRS == 31
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_28(WORK)
#elif ATP_PAIRS == 27
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_24(WORK)
#elif ATP_PAIRS == 23
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_20(WORK)
#elif ATP_PAIRS == 19
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_16(WORK)
#elif ATP_PAIRS == 7
#define ATP_LATER_PAIRS(WORK) ATP_PAIRS_4(WORK)
#else
#error ATP_PAIRS is none of 7, 19, 23, 27 and 31
#endif

#define ATP_FIELDS_OF_PAIR(AT) \
    bit<32> upper##AT;         \
    bit<32> lower##AT;
header lanes_t {
    ATP_FIRST_PAIRS(ATP_FIELDS_OF_PAIR)
    ATP_LATER_PAIRS(ATP_FIELDS_OF_PAIR)
}

struct ingress_headers_t {
    again_t again;
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    atp_t atp;
    lanes_t lanes;
}

struct ingress_notes_t {
    bit<8> kind;         // enum atp_pass_kind
    bit<8> work;         // what the packet wants, by its type, flags and kind; 0: it passes
    bit<8> stream;       // of the packet, from 1
    bit<8> place;        // from 1
    bit<32> mask;        // of the place
    bit<32> mine;        // tag of the packet
    bit<32> expected;    // tag that a swap expects
    bit<32> next;        // tag that a swap writes
    bit<32> body;        // shape of the packet
    bit<32> bit_of_set;  // contribution, one bit
    bit<16> marks_of_packet;
    bit<16> marks;
    bit<8> late;
    bit<32> tag;     // before
    bit<32> before;  // bitmap before, or `body`; 0: does not fit
    bit<32> after;
    bit<8> aged;
    bit<8> lanes_work;  // enum atp_pipeline_lanes
    bit<32> now;
}

parser AtpIngressParser(packet_in packet, out ingress_headers_t headers, out ingress_notes_t notes,
                        out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        notes.kind = 0;
        notes.work = 0;
        notes.stream = 0;
        notes.place = 0;
        notes.mask = 0;
        notes.mine = 0;
        notes.expected = 0;
        notes.next = 0;
        notes.body = 0;
        notes.bit_of_set = 0;
        notes.marks_of_packet = 0;
        notes.marks = 0;
        notes.late = 0;
        notes.tag = 0;
        notes.before = 0;
        notes.after = 0;
        notes.aged = 0;
        notes.lanes_work = 0;
        notes.now = 0;
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

control AtpIngress(inout ingress_headers_t headers, inout ingress_notes_t notes,
                   in ingress_intrinsic_metadata_t intrinsic,
                   in ingress_intrinsic_metadata_from_parser_t from_parser,
                   inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                   inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    // ---- stage 0: what the control plane admitted

    action admit(bit<8> stream) {
        notes.stream = stream;
        notes.mine = 2w0 ++ stream[6:0] ++ headers.atp.seq[22:0];
    }
    table streams {
        key = {
            headers.atp.job: exact;
            headers.atp.token: exact;
            headers.atp.channel: exact;
        }
        actions = {
            admit;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 128;
    }
    // `shape`: of `body`, without purpose.
    action serve(bit<16> shape, bit<32> mask) {
        notes.body = headers.atp.argument[15:0] ++ shape;
        notes.mask = mask;
        notes.place = 1;
    }
    table places {
        key = {
            headers.atp.job: exact;
            headers.atp.token: exact;
            headers.atp.channel: exact;
            headers.atp.hop: exact;
            headers.atp.bitmap1: ternary;
            headers.atp.flags: ternary;
            headers.atp.seq[31:23]: ternary;
        }
        actions = {
            serve;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 512;
    }
    action want(bit<8> work, bit<8> kind) {
        notes.work = work;
        notes.kind = kind;
        notes.marks_of_packet = headers.atp.flags & (ATP_FLAG_ECN | ATP_FLAG_OVERFLOW | ATP_FLAG_ECN_DOWN);
        notes.now = from_parser.global_tstamp[41:10];
    }
    table wants {
        key = {
            headers.atp.type: exact;
            headers.atp.flags: ternary;
            headers.atp.hop: ternary;
            headers.again.isValid(): exact;
            headers.again.kind: ternary;
        }
        actions = {
            want;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 64;
    }

    // ---- stage 1: the tombstone, and what a swap of tags expects

    Register<pair_t, bit<32>>(ATP_AGGREGATORS) tomb;
    RegisterAction<pair_t, bit<32>, bit<8>>(tomb) tomb_is = {
        void apply(inout pair_t held, out bit<8> result) {
            if (held.upper == notes.mine && held.lower == headers.atp.seq) {
                result = 1;
            } else {
                result = 0;
            }
        }
    };
    RegisterAction<pair_t, bit<32>, bit<8>>(tomb) tomb_write = {
        void apply(inout pair_t held, out bit<8> result) {
            held.upper = notes.mine;
            held.lower = headers.atp.seq;
            result = 0;
        }
    };
    action ask_tomb() {
        notes.late = tomb_is.execute(headers.atp.index);
    }
    action write_tomb() {
        notes.late = tomb_write.execute(headers.atp.index);
    }
    table tombs {
        key = {
            notes.work: exact;
        }
        actions = {
            ask_tomb;
            write_tomb;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 16;
    }
    action expect_mine(bit<32> next_or) {
        notes.expected = notes.mine;
        notes.next = notes.mine | next_or;
    }
    action expect_leaving() {
        notes.expected = notes.mine | 0x40000000;
        notes.next = 0x80000000;
    }
    action expect_seen_claim() {
        notes.expected = headers.again.seen;
        notes.next = notes.mine;
    }
    action expect_seen_free() {
        notes.expected = headers.again.seen;
        notes.next = 0x80000000;
    }
    table expectations {
        key = {
            notes.work: exact;
        }
        actions = {
            expect_mine;
            expect_leaving;
            expect_seen_claim;
            expect_seen_free;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 16;
    }
    action contribute0() {
        notes.bit_of_set = headers.atp.bitmap0;
    }
    action contribute1() {
        notes.bit_of_set = headers.atp.bitmap1;
    }
    table contributions {
        key = {
            headers.atp.hop: exact;
        }
        actions = {
            contribute0;
            contribute1;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 2;
    }

    // ---- stage 2: the tag

    Register<bit<32>, bit<32>>(ATP_AGGREGATORS, 0x80000000) tag;
    RegisterAction<bit<32>, bit<32>, bit<32>>(tag) tag_claim = {
        void apply(inout bit<32> held, out bit<32> result) {
            if (held == notes.next) {
                result = 0;
            } else {
                result = held;
            }
            if ((int<32>)held < 0) {
                held = notes.next;
            }
        }
    };
    RegisterAction<bit<32>, bit<32>, bit<32>>(tag) tag_swap = {
        void apply(inout bit<32> held, out bit<32> result) {
            result = held;
            if (held == notes.expected) {
                held = notes.next;
            }
        }
    };
    action claim_tag() {
        notes.tag = tag_claim.execute(headers.atp.index);
    }
    action swap_tag() {
        notes.tag = tag_swap.execute(headers.atp.index);
    }
    table tags {
        key = {
            notes.work: exact;
            notes.late: exact;
        }
        actions = {
            claim_tag;
            swap_tag;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 32;
    }

    // ---- stage 3: shape and bitmap, time, marks

    Register<pair_t, bit<32>>(ATP_AGGREGATORS) body;
    RegisterAction<pair_t, bit<32>, bit<32>>(body) body_write = {
        void apply(inout pair_t held, out bit<32> result) {
            held.lower = notes.body;
            held.upper = notes.bit_of_set;
            result = 0;
        }
    };
    RegisterAction<pair_t, bit<32>, bit<32>>(body) body_gather = {
        void apply(inout pair_t held, out bit<32> result) {
            if (held.lower == notes.body) {
                result = held.upper;
                held.upper = held.upper | notes.bit_of_set;
            } else {
                result = 0;
            }
        }
    };
    RegisterAction<pair_t, bit<32>, bit<32>>(body) body_read = {
        void apply(inout pair_t held, out bit<32> result) {
            result = held.lower;
        }
    };
    action write_body() {
        notes.before = body_write.execute(headers.atp.index);
    }
    action gather_body() {
        notes.before = body_gather.execute(headers.atp.index);
    }
    action read_body() {
        notes.before = body_read.execute(headers.atp.index);
    }
    table bodies {
        key = {
            notes.work: exact;
            notes.tag: ternary;
        }
        actions = {
            write_body;
            gather_body;
            read_body;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 64;
    }
    Register<bit<32>, bit<32>>(ATP_AGGREGATORS) time;
    RegisterAction<bit<32>, bit<32>, bit<8>>(time) time_touch = {
        void apply(inout bit<32> held, out bit<8> result) {
            held = notes.now;
            result = 0;
        }
    };
    // The ageing time is 2^19 units of 1.024 microseconds.
    RegisterAction<bit<32>, bit<32>, bit<8>>(time) time_is_aged = {
        void apply(inout bit<32> held, out bit<8> result) {
            if ((int<32>)(notes.now - held) > 524288) {
                result = 1;
            } else {
                result = 0;
            }
        }
    };
    action touch_time() {
        notes.aged = time_touch.execute(headers.atp.index);
    }
    action ask_time() {
        notes.aged = time_is_aged.execute(headers.atp.index);
    }
    table times {
        key = {
            notes.work: exact;
            notes.tag: ternary;
        }
        actions = {
            touch_time;
            ask_time;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 64;
    }
    Register<bit<16>, bit<32>>(ATP_AGGREGATORS) mark;
    RegisterAction<bit<16>, bit<32>, bit<16>>(mark) mark_write = {
        void apply(inout bit<16> held, out bit<16> result) {
            held = notes.marks_of_packet;
            result = 0;
        }
    };
    RegisterAction<bit<16>, bit<32>, bit<16>>(mark) mark_add = {
        void apply(inout bit<16> held, out bit<16> result) {
            held = held | notes.marks_of_packet;
            result = held;
        }
    };
    action write_mark() {
        notes.marks = mark_write.execute(headers.atp.index);
    }
    action add_mark() {
        notes.marks = mark_add.execute(headers.atp.index);
    }
    table marks_of {
        key = {
            notes.work: exact;
            notes.tag: ternary;
        }
        actions = {
            write_mark;
            add_mark;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 64;
    }

    // ---- stages 4 to 11: lanes. `sets` decides for the lanes from stage 5 on, and the first lanes decide alike.

    action gathered(bit<8> lanes_work) {
        notes.after = notes.before | notes.bit_of_set;
        notes.lanes_work = lanes_work;
    }
    table sets {
        key = {
            notes.work: exact;
            notes.tag: ternary;
            notes.before: ternary;
            notes.bit_of_set: ternary;
        }
        actions = {
            gathered;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 512;
    }

#define ATP_CELL_OF_PAIR(AT)                                                                         \
    Register<pair_t, bit<32>>(ATP_AGGREGATORS) pair##AT;                                             \
    RegisterAction<pair_t, bit<32>, bit<32>>(pair##AT) store##AT = {                                 \
        void apply(inout pair_t held, out bit<32> result) {                                          \
            held.upper = headers.lanes.upper##AT;                                                    \
            held.lower = headers.lanes.lower##AT;                                                    \
            result = 0;                                                                              \
        }                                                                                            \
    };                                                                                               \
    RegisterAction<pair_t, bit<32>, bit<32>>(pair##AT) add##AT = {                                   \
        void apply(inout pair_t held, out bit<32> result) {                                          \
            held.upper = held.upper + headers.lanes.upper##AT;                                       \
            held.lower = held.lower + headers.lanes.lower##AT;                                       \
            result = held.upper;                                                                     \
        }                                                                                            \
    };                                                                                               \
    RegisterAction<pair_t, bit<32>, bit<32>>(pair##AT) get_upper##AT = {                             \
        void apply(inout pair_t held, out bit<32> result) { result = held.upper; }                   \
    };                                                                                               \
    RegisterAction<pair_t, bit<32>, bit<32>>(pair##AT) get_lower##AT = {                             \
        void apply(inout pair_t held, out bit<32> result) { result = held.lower; }                   \
    };                                                                                               \
    action do_store##AT() { headers.lanes.upper##AT = store##AT.execute(headers.atp.index); }        \
    action do_add##AT() { headers.lanes.upper##AT = add##AT.execute(headers.atp.index); }            \
    action do_get_upper##AT() { headers.lanes.upper##AT = get_upper##AT.execute(headers.atp.index); } \
    action do_get_lower##AT() { headers.lanes.lower##AT = get_lower##AT.execute(headers.atp.index); }

#define ATP_ACTIONS_OF_PAIR(AT)                                                                      \
    actions = {                                                                                      \
        do_store##AT;                                                                                \
        do_add##AT;                                                                                  \
        do_get_upper##AT;                                                                            \
        do_get_lower##AT;                                                                            \
        @defaultonly NoAction;                                                                       \
    }                                                                                                \
    default_action = NoAction();

#define ATP_FIRST_PAIR(AT)                                                                           \
    ATP_CELL_OF_PAIR(AT)                                                                             \
    table lanes##AT {                                                                                \
        key = {                                                                                      \
            notes.work: exact;                                                                       \
            notes.tag: ternary;                                                                      \
            notes.before: ternary;                                                                   \
            notes.bit_of_set: ternary;                                                               \
        }                                                                                            \
        ATP_ACTIONS_OF_PAIR(AT) size = 512;                                                          \
    }
#define ATP_LATER_PAIR(AT)                                                                           \
    ATP_CELL_OF_PAIR(AT)                                                                             \
    table lanes##AT {                                                                                \
        key = {                                                                                      \
            notes.lanes_work: exact;                                                                 \
        }                                                                                            \
        ATP_ACTIONS_OF_PAIR(AT) size = 8;                                                            \
    }
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
        notes.kind = 1;
    }
    action recirculate0(bit<8> kind) {
        for_tm.ucast_egress_port = 68;
        headers.again.setValid();
        headers.again.kind = kind;
        headers.atp.bitmap0 = notes.after;
        headers.atp.flags = headers.atp.flags | notes.marks;
    }
    action recirculate1(bit<8> kind) {
        for_tm.ucast_egress_port = 68;
        headers.again.setValid();
        headers.again.kind = kind;
        headers.atp.bitmap1 = notes.after;
        headers.atp.flags = headers.atp.flags | notes.marks;
    }
    table fates {
        key = {
            notes.work: exact;
            notes.late: exact;
            notes.aged: exact;
            notes.lanes_work: exact;
            notes.before: ternary;
        }
        actions = {
            absorb;
            forward;
            forward_alone;
            resubmit_claim;
            recirculate0;
            recirculate1;
            @defaultonly NoAction;
        }
        default_action = NoAction();
        size = 128;
    }

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
            ATP_FIRST_PAIRS(ATP_APPLY_PAIR)
            ATP_LATER_PAIRS(ATP_APPLY_PAIR)
            fates.apply();
        }
    }
}

control AtpIngressDeparser(packet_out packet, inout ingress_headers_t headers, in ingress_notes_t notes,
                           in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Resubmit() resubmit;
    apply {
        if (for_deparser.resubmit_type == 1) {
            resubmit.emit<again_t>({notes.kind, 0, notes.tag});
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
