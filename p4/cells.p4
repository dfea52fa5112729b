// SPDX-License-Identifier: Apache-2.0
// The registers of a pipeline with their programs, for every architecture: src/machines/protocol/pipeline_cells.h,
// whose names and order this file keeps. A control includes it, with `headers` and a pass_t named `pass` in scope.
//
// The architecture defines before: ATP_REGISTER(type, name, initial value) and ATP_REGISTER_OF_PAIRS(name);
// ATP_PROGRAM(type, register, program, type of the result, place of the result, text) and ATP_PROGRAM_OF_PAIRS, the
// same without the first type, where the text reads and writes `held` and writes `result`; ATP_UPPER and ATP_LOWER, the
// lanes of a pair in the packet; ATP_AGEING, in units of pass.now; ATP_EACH_PAIR. A program becomes an action.

ATP_REGISTER_OF_PAIRS(tomb)
ATP_PROGRAM_OF_PAIRS(tomb, tomb_is, bit<8>, pass.late,
    if (held.upper == pass.mine && held.lower == headers.atp.seq) {
        result = 1;
    } else {
        result = 0;
    })
ATP_PROGRAM_OF_PAIRS(tomb, tomb_write, bit<8>, pass.late,
    held.upper = pass.mine;
    held.lower = headers.atp.seq;
    result = 0;)

// All programs of a register read two words of the packet at most, so a claim reads its tag where a swap does.
ATP_REGISTER(bit<32>, tag, ATP_TAG_FREE)
ATP_PROGRAM(bit<32>, tag, tag_claim, bit<32>, pass.tag,
    if (held == pass.next) {
        result = 0;
    } else {
        result = held;
    }
    if ((int<32>)held < 0) {
        held = pass.next;
    })
ATP_PROGRAM(bit<32>, tag, tag_swap, bit<32>, pass.tag,
    result = held;
    if (held == pass.expected) {
        held = pass.next;
    })

// Upper word: bitmap.
ATP_REGISTER_OF_PAIRS(body)
ATP_PROGRAM_OF_PAIRS(body, body_write, bit<32>, pass.before,
    held.lower = pass.body;
    held.upper = pass.bit_of_set;
    result = 0;)
ATP_PROGRAM_OF_PAIRS(body, body_gather, bit<32>, pass.before,
    if (held.lower == pass.body) {
        result = held.upper;
        held.upper = held.upper | pass.bit_of_set;
    } else {
        result = 0;
    })
ATP_PROGRAM_OF_PAIRS(body, body_read, bit<32>, pass.before,
    result = held.lower;)

ATP_REGISTER(bit<32>, time, 0)
ATP_PROGRAM(bit<32>, time, time_touch, bit<8>, pass.aged,
    held = pass.now;
    result = 0;)
ATP_PROGRAM(bit<32>, time, time_is_aged, bit<8>, pass.aged,
    if ((int<32>)(pass.now - held) > ATP_AGEING) {
        result = 1;
    } else {
        result = 0;
    })

ATP_REGISTER(bit<16>, mark, 0)
ATP_PROGRAM(bit<16>, mark, mark_write, bit<16>, pass.marks,
    held = pass.marks_of_packet;
    result = 0;)
ATP_PROGRAM(bit<16>, mark, mark_add, bit<16>, pass.marks,
    held = held | pass.marks_of_packet;
    result = held;)

// A packet that stores or only adds is absorbed, so what these programs return does not matter.
#define ATP_CELL_OF_PAIR(AT)                                                   \
    ATP_REGISTER_OF_PAIRS(pair##AT)                                            \
    ATP_PROGRAM_OF_PAIRS(pair##AT, store##AT, bit<32>, ATP_UPPER(AT),          \
        held.upper = ATP_UPPER(AT);                                            \
        held.lower = ATP_LOWER(AT);                                            \
        result = 0;)                                                           \
    ATP_PROGRAM_OF_PAIRS(pair##AT, add##AT, bit<32>, ATP_UPPER(AT),            \
        held.upper = held.upper + ATP_UPPER(AT);                               \
        held.lower = held.lower + ATP_LOWER(AT);                               \
        result = held.upper;)                                                  \
    ATP_PROGRAM_OF_PAIRS(pair##AT, emit_upper##AT, bit<32>, ATP_UPPER(AT),     \
        result = held.upper;)                                                  \
    ATP_PROGRAM_OF_PAIRS(pair##AT, emit_lower##AT, bit<32>, ATP_LOWER(AT),     \
        result = held.lower;)
ATP_EACH_PAIR(ATP_CELL_OF_PAIR)
