// SPDX-License-Identifier: Apache-2.0
// A pass of a packet through the registers of a pipeline: src/machines/protocol/pipeline_cells.h and decide_pipeline.h,
// whose names this file keeps.
#ifndef ATP_PASS_P4
#define ATP_PASS_P4

const bit<32> ATP_TAG_FREE = 0x80000000;
const bit<32> ATP_TAG_LEAVING = 0x40000000;
const bit<32> ATP_TAG_SEQ_MASK = 0x7FFFFF;

// enum atp_pass_kind
const bit<8> ATP_PASS_FIRST = 0;
const bit<8> ATP_PASS_CLAIM = 1;
const bit<8> ATP_PASS_EXPIRE = 2;
const bit<8> ATP_PASS_FETCH = 3;
const bit<8> ATP_PASS_HARVEST = 4;
const bit<8> ATP_PASS_TAKE = 5;
const bit<8> ATP_PASS_RETURN = 6;

// enum atp_pipeline_action
const bit<8> ATP_PIPELINE_RESUBMIT = 3;
const bit<8> ATP_PIPELINE_RECIRCULATE = 4;

// enum atp_pipeline_lanes
const bit<8> ATP_PAIRS_NONE = 0;
const bit<8> ATP_PAIRS_STORE = 1;
const bit<8> ATP_PAIRS_ADD = 2;
const bit<8> ATP_PAIRS_ADD_EMIT_UPPER = 3;
const bit<8> ATP_PAIRS_EMIT_UPPER = 4;
const bit<8> ATP_PAIRS_EMIT_LOWER = 5;

// Two registers of one width that are accessed together.
struct pair_t {
    bit<32> upper;
    bit<32> lower;
}

// What the registers read, and what they return.
struct pass_t {
    bit<8> kind;         // enum atp_pass_kind
    bit<8> work;         // what the packet wants, by its type, flags and kind; 0: it passes
    bit<8> stream;       // of the packet, from 1
    bit<8> place;        // from 1
    bit<32> mask;        // of the place
    bit<32> mine;        // tag of the packet
    bit<32> expected;    // tag that a swap expects
    bit<32> next;        // tag that a swap or a claim writes
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

#endif
