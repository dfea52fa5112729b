// SPDX-License-Identifier: Apache-2.0
// One pass of a packet through a pipeline with one access to each register: src/lab/pipeline/decide_pipeline.h, whose
// names and order this file keeps. docs/develop/p4.md explains the passes. The registers are those of cells.p4.
#ifndef ATP_PASSES_P4
#define ATP_PASSES_P4

#include "actions.p4"
#include "parser.p4"
#include "pass_constants.p4"

// What a packet wants from the registers. GATHER, STORE and AGE follow from what `tag` returned.
const bit<8> WORK_NONE = 0;
const bit<8> WORK_CLAIM = 1;
const bit<8> WORK_CLAIM_SEEN = 2;
const bit<8> WORK_RESEND = 3;
const bit<8> WORK_FETCH_RESEND = 4;
const bit<8> WORK_FLUSH = 5;
const bit<8> WORK_FETCH_FLUSH = 6;
const bit<8> WORK_RELEASE = 7;
const bit<8> WORK_EXPIRE = 8;
const bit<8> WORK_HARVEST = 9;
const bit<8> WORK_GATHER = 10;
const bit<8> WORK_STORE = 11;
const bit<8> WORK_AGE = 12;

// struct atp_pipeline_outcome
struct outcome_t {
    bit<8> packet;
    bit<8> lanes;
    bit<8> event;
    bit<8> next;
    bit<32> seen;
}

// What the control plane admitted: struct atp_pipeline_place. 0: not admitted, or not served here.
struct place_t {
    bit<8> stream;
    bit<8> place;
    bit<32> mask;
}

// `kind` and `seen` came with the packet from its pass before. `full_lanes`: the only number of lanes that are added.
control Pass(inout headers_t headers, in bit<16> lanes, in bit<16> full_lanes, in bit<8> kind, in bit<32> seen,
             in place_t place, in bit<32> now, out outcome_t outcome) {
    pass_t pass;
    bit<32> mine = 0;  // contribution
    bool can_add = false;
    bool superseded = false;

#include "cells.p4"

    action end(bit<8> packet_action, bit<8> lanes_action, bit<8> event) {
        outcome.packet = packet_action;
        outcome.lanes = lanes_action;
        outcome.event = event;
    }
    action again(bit<8> packet_action, bit<8> lanes_action, bit<8> event, bit<8> next, bit<32> seen_now) {
        end(packet_action, lanes_action, event);
        outcome.next = next;
        outcome.seen = seen_now;
    }
    action forward_alone(bit<8> event) {
        headers.atp.flags = headers.atp.flags | ATP_FLAG_BYPASS;
        headers.atp.hop = headers.atp.hop + 1;
        end(ATP_PACKET_FORWARD, ATP_PAIRS_NONE, event);
    }
    action collide() {
        headers.atp.flags = headers.atp.flags | ATP_FLAG_COLLISION;
        forward_alone(ATP_EVENT_COLLIDED);
    }
    action pass_on(bit<8> event) {
        headers.atp.hop = headers.atp.hop + 1;
        end(ATP_PACKET_FORWARD, ATP_PAIRS_NONE, event);
    }
    // The packet takes the set and the marks of the aggregator.
    action load() {
        pass.after = pass.before | mine;
        headers.atp.flags = headers.atp.flags | pass.marks | (headers.atp.hop == 0 ? 16w0 : ATP_FLAG_WHOLE);
        headers.atp.bitmap0 = headers.atp.hop == 0 ? pass.after : headers.atp.bitmap0;
        headers.atp.bitmap1 = headers.atp.hop == 0 ? headers.atp.bitmap1 : pass.after;
    }
    // A FLUSH becomes a gradient. `seen` is the shape of the fragment.
    action turn_around() {
        headers.atp.type = ATP_TYPE_GRADIENT;
        headers.atp.lanes = ATP_INT32_LANES;
        headers.atp.flags = ATP_FLAG_BYPASS;
        headers.atp.flags = headers.atp.flags | (seen[2:2] == 1 ? ATP_FLAG_PROOF : 16w0);
        headers.atp.flags = headers.atp.flags | (seen[1:1] == 1 ? ATP_FLAG_PLAIN : 16w0);
        headers.atp.flags = headers.atp.flags | (seen[0:0] == 1 ? ATP_FLAG_AUDIT : 16w0);
        headers.atp.worker = ATP_WORKER_ALL;
        headers.atp.argument = 16w0 ++ seen[31:16];
    }
    action want(bit<8> work) {
        pass.work = work;
    }

    // ---- in front of the registers: what the packet wants, and what the registers read

    action describe() {
        bit<1> proof = headers.atp.flags & ATP_FLAG_PROOF != 0 ? 1w1 : 1w0;
        bit<1> plain = headers.atp.flags & ATP_FLAG_PLAIN != 0 ? 1w1 : 1w0;
        bit<1> audit = headers.atp.flags & ATP_FLAG_AUDIT != 0 ? 1w1 : 1w0;
        mine = headers.atp.hop == 0 ? headers.atp.bitmap0 : headers.atp.bitmap1;
        pass.kind = kind;
        pass.work = WORK_NONE;
        pass.stream = place.stream;
        pass.place = place.place;
        pass.mask = place.mask;
        pass.now = now;
        pass.mine = 2w0 ++ pass.stream[6:0] ++ headers.atp.seq[22:0];
        pass.body = headers.atp.argument[15:0] ++ headers.atp.seq[31:23] ++ pass.place[3:0] ++ proof ++ plain ++ audit;
        pass.bit_of_set = mine;
        pass.marks_of_packet = headers.atp.flags & (ATP_FLAG_ECN | ATP_FLAG_OVERFLOW | ATP_FLAG_ECN_DOWN);
        pass.late = 0;
        pass.aged = 0;
        pass.tag = 0;
        pass.before = 0;
        pass.after = 0;
        pass.marks = 0;
        pass.expected = pass.mine;
        pass.next = pass.mine;
        end(ATP_PACKET_FORWARD, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
        outcome.next = ATP_PASS_FIRST;
        outcome.seen = 0;
    }
    action expect_seen() {
        pass.expected = seen;
    }
    action write_leaving() {
        pass.next = pass.mine | ATP_TAG_LEAVING;
    }
    action write_free() {
        pass.next = ATP_TAG_FREE;
    }
    action add_nothing() {
        pass.bit_of_set = 0;
    }

    apply {
        describe();
        bool is_release = headers.atp.type == ATP_TYPE_ACK ||
                          (headers.atp.type == ATP_TYPE_NACK && headers.atp.flags & ATP_FLAG_BYPASS != 0);
        bit<32> mask = headers.atp.hop == 0 ? headers.atp.mask0 : headers.atp.mask1;
        bool fits_level = headers.atp.hop == 0 ? headers.atp.bitmap0 != 0
                                               : headers.atp.bitmap1 != 0 &&
                                                 (headers.atp.flags & ATP_FLAG_WHOLE != 0 ||
                                                  headers.atp.bitmap0 == headers.atp.mask0);
        can_add = headers.atp.lanes == ATP_INT32_LANES && lanes == full_lanes && mask == pass.mask && mine != 0 &&
                  mine & (mine - 1) == 0;
        if (headers.atp.type == ATP_TYPE_GRADIENT) {
            if (pass.kind >= ATP_PASS_HARVEST) {
                want(WORK_HARVEST);
            } else if (headers.atp.flags & ATP_FLAG_BYPASS != 0 || headers.atp.hop >= ATP_LEVELS) {
                end(ATP_PACKET_FORWARD, ATP_PAIRS_NONE, ATP_EVENT_BYPASSED);
            } else if (pass.place == 0) {
                end(ATP_PACKET_FORWARD, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
            } else if (headers.atp.lanes[7:4] != headers.atp.lanes[3:0]) {
                forward_alone(ATP_EVENT_MISFIT);
            } else if (headers.atp.flags & ATP_FLAG_RESEND != 0) {
                want(pass.kind == ATP_PASS_FIRST ? WORK_RESEND : WORK_FETCH_RESEND);
            } else if (!fits_level) {
                forward_alone(ATP_EVENT_MISFIT);
            } else if (mine == mask) {
                pass_on(ATP_EVENT_SINGLE);
            } else if (!can_add) {
                forward_alone(ATP_EVENT_MISFIT);
            } else {
                want(pass.kind == ATP_PASS_CLAIM ? WORK_CLAIM_SEEN : WORK_CLAIM);
            }
        } else if (is_release) {
            want(pass.kind == ATP_PASS_EXPIRE ? WORK_EXPIRE : WORK_RELEASE);
        } else if (headers.atp.type == ATP_TYPE_FLUSH && pass.place != 0) {
            want(pass.kind == ATP_PASS_FIRST ? WORK_FLUSH : WORK_FETCH_FLUSH);
        }

        // ---- tomb
        if (pass.work == WORK_CLAIM || pass.work == WORK_CLAIM_SEEN) {
            tomb_is();
        } else if (pass.work == WORK_RESEND || pass.work == WORK_FLUSH || pass.work == WORK_RELEASE) {
            tomb_write();
        }
        if (pass.late == 1) {
            forward_alone(ATP_EVENT_LATE);
            want(WORK_NONE);
        } else if (pass.work == WORK_RESEND && (headers.atp.hop != 0 || !can_add)) {
            pass_on(ATP_EVENT_RESENT);
            want(WORK_NONE);
        }
        if (pass.work == WORK_CLAIM_SEEN) {
            expect_seen();
        } else if (pass.work == WORK_FETCH_RESEND) {
            write_leaving();
        } else if (pass.work == WORK_RESEND || pass.work == WORK_FLUSH) {
            add_nothing();
        } else if (pass.work == WORK_FETCH_FLUSH) {
            write_leaving();
            add_nothing();
            pass.body = seen;
            pass.marks_of_packet = 0;
        } else if (pass.work == WORK_RELEASE) {
            write_free();
        } else if (pass.work == WORK_EXPIRE) {
            expect_seen();
            write_free();
        } else if (pass.work == WORK_HARVEST) {
            add_nothing();
            if (pass.kind != ATP_PASS_HARVEST) {
                pass.expected = pass.mine | ATP_TAG_LEAVING;
                write_free();
            }
        }

        // ---- tag
        if (pass.work == WORK_CLAIM) {
            tag_claim();
        } else if (pass.work != WORK_NONE) {
            tag_swap();
        }
        bit<32> judged = pass.work == WORK_CLAIM_SEEN ? seen : pass.tag;
        bit<23> ahead = pass.mine[22:0] - judged[22:0];
        superseded = judged[31:23] == pass.mine[31:23] && ahead >= 23w1 << headers.atp.window_log2 &&
                     ahead[22:22] == 0;
        if (pass.work == WORK_CLAIM) {
            if (pass.tag == 0) {
                want(WORK_GATHER);
            } else if (pass.tag[31:31] == 1) {
                end(ATP_PACKET_DROP, ATP_PAIRS_STORE, ATP_EVENT_CLAIMED);
                want(WORK_STORE);
            } else {
                want(WORK_AGE);
            }
        } else if (pass.work == WORK_CLAIM_SEEN) {
            if (pass.tag == seen) {
                end(ATP_PACKET_DROP, ATP_PAIRS_STORE, superseded ? ATP_EVENT_SUPERSEDED : ATP_EVENT_TAKEN_OVER);
                want(WORK_STORE);
            } else if (pass.tag == pass.mine) {
                want(WORK_GATHER);
            } else {
                collide();
                want(WORK_NONE);
            }
        } else if (pass.work == WORK_RESEND || pass.work == WORK_FETCH_RESEND) {
            if (pass.tag != pass.mine) {
                pass_on(ATP_EVENT_RESENT);
                want(WORK_NONE);
            }
        } else if (pass.work == WORK_FETCH_FLUSH) {
            if (pass.tag != pass.mine) {
                end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
                want(WORK_NONE);
            }
        } else if (pass.work == WORK_RELEASE) {
            if (pass.tag == pass.mine) {
                end(ATP_PACKET_FORWARD, ATP_PAIRS_NONE, ATP_EVENT_RELEASED);
            } else if (pass.tag[31:31] == 1) {
                end(ATP_PACKET_FORWARD, ATP_PAIRS_NONE,
                    headers.atp.type == ATP_TYPE_NACK ? ATP_EVENT_CLOSED : ATP_EVENT_PASSED);
            } else {
                want(WORK_AGE);
            }
        } else if (pass.work == WORK_EXPIRE && pass.tag == seen) {
            end(ATP_PACKET_FORWARD, ATP_PAIRS_NONE, ATP_EVENT_EXPIRED);
        }

        // ---- body, time and mark
        if (pass.work == WORK_STORE) {
            body_write();
        } else if (pass.work == WORK_FLUSH) {
            body_read();
        } else if (pass.work == WORK_GATHER || pass.work == WORK_RESEND || pass.work == WORK_FETCH_RESEND ||
                   pass.work == WORK_FETCH_FLUSH || pass.work == WORK_HARVEST) {
            body_gather();
        }
        if (pass.work == WORK_STORE || pass.work == WORK_GATHER) {
            time_touch();
        } else if (pass.work == WORK_AGE) {
            time_is_aged();
        }
        if (pass.work == WORK_STORE) {
            mark_write();
        } else if (pass.work == WORK_GATHER || pass.work == WORK_FETCH_RESEND || pass.work == WORK_FETCH_FLUSH) {
            mark_add();
        }

        // ---- what becomes of the packet
        bool is_included = pass.before & mine != 0;
        if (pass.work == WORK_GATHER) {
            if (pass.before == 0) {
                forward_alone(ATP_EVENT_MISFIT);
            } else if (pass.before | mine != pass.mask) {
                end(ATP_PACKET_DROP, is_included ? ATP_PAIRS_NONE : ATP_PAIRS_ADD,
                    is_included ? ATP_EVENT_DUPLICATE : ATP_EVENT_ADDED);
            } else {
                load();
                again(ATP_PIPELINE_RECIRCULATE, is_included ? ATP_PAIRS_EMIT_UPPER : ATP_PAIRS_ADD_EMIT_UPPER,
                      is_included ? ATP_EVENT_REEMITTED : ATP_EVENT_COMPLETED, ATP_PASS_HARVEST, 0);
            }
        } else if (pass.work == WORK_AGE) {
            if (is_release && pass.aged == 1) {
                again(ATP_PIPELINE_RESUBMIT, ATP_PAIRS_NONE, ATP_EVENT_PASSED, ATP_PASS_EXPIRE, pass.tag);
            } else if (!is_release && (pass.aged == 1 || superseded)) {
                again(ATP_PIPELINE_RESUBMIT, ATP_PAIRS_NONE, ATP_EVENT_PASSED, ATP_PASS_CLAIM, pass.tag);
            } else if (!is_release) {
                collide();
            }
        } else if (pass.work == WORK_RESEND) {
            if (pass.before == 0) {
                pass_on(ATP_EVENT_RESENT);
            } else {
                again(ATP_PIPELINE_RESUBMIT, ATP_PAIRS_NONE, ATP_EVENT_PASSED, ATP_PASS_FETCH, 0);
            }
        } else if (pass.work == WORK_FETCH_RESEND) {
            if (pass.before == 0) {
                pass_on(ATP_EVENT_RESENT);
            } else {
                load();
                again(ATP_PIPELINE_RECIRCULATE, is_included ? ATP_PAIRS_EMIT_UPPER : ATP_PAIRS_ADD_EMIT_UPPER,
                      ATP_EVENT_PASSED, ATP_PASS_TAKE, 0);
            }
        } else if (pass.work == WORK_FLUSH) {
            bool is_place = pass.before[15:3] == headers.atp.seq[31:23] ++ pass.place[3:0];
            if (pass.tag[31:31] == 1) {
                end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_CLOSED);
            } else if (pass.tag != pass.mine || !is_place || mask != pass.mask) {
                end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
            } else {
                again(ATP_PIPELINE_RESUBMIT, ATP_PAIRS_NONE, ATP_EVENT_PASSED, ATP_PASS_FETCH, pass.before);
            }
        } else if (pass.work == WORK_FETCH_FLUSH) {
            if (pass.before == 0) {
                end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
            } else {
                mine = 0;
                turn_around();
                load();
                again(ATP_PIPELINE_RECIRCULATE, ATP_PAIRS_EMIT_UPPER, ATP_EVENT_PASSED, ATP_PASS_RETURN, 0);
            }
        } else if (pass.work == WORK_HARVEST) {
            if (pass.tag != pass.expected || pass.before != mine) {
                end(ATP_PACKET_DROP, ATP_PAIRS_NONE, ATP_EVENT_PASSED);
            } else {
                headers.atp.hop = headers.atp.hop + 1;
                end(pass.kind == ATP_PASS_RETURN ? ATP_PACKET_RETURN : ATP_PACKET_FORWARD, ATP_PAIRS_EMIT_LOWER,
                    pass.kind == ATP_PASS_RETURN ? ATP_EVENT_FLUSHED
                                                 : (pass.kind == ATP_PASS_TAKE ? ATP_EVENT_FETCHED : ATP_EVENT_PASSED));
            }
        }

        // ---- lanes
#define ATP_STORE_PAIR(AT) store##AT();
#define ATP_ADD_PAIR(AT) add##AT();
#define ATP_EMIT_UPPER_PAIR(AT) emit_upper##AT();
#define ATP_EMIT_LOWER_PAIR(AT) emit_lower##AT();
        if (outcome.lanes == ATP_PAIRS_STORE) {
            ATP_EACH_PAIR(ATP_STORE_PAIR)
        } else if (outcome.lanes == ATP_PAIRS_ADD || outcome.lanes == ATP_PAIRS_ADD_EMIT_UPPER) {
            ATP_EACH_PAIR(ATP_ADD_PAIR)
        } else if (outcome.lanes == ATP_PAIRS_EMIT_UPPER) {
            ATP_EACH_PAIR(ATP_EMIT_UPPER_PAIR)
        } else if (outcome.lanes == ATP_PAIRS_EMIT_LOWER) {
            ATP_EACH_PAIR(ATP_EMIT_LOWER_PAIR)
        }
    }
}

#endif
