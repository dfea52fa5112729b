// SPDX-License-Identifier: Apache-2.0
// The checks of a packet behind its length: src/machines/wire/check.h, whose names and order this file keeps. A packet
// that fails passes unchanged: its receiver counts it.
#ifndef ATP_CHECK_P4
#define ATP_CHECK_P4

#include "parser.p4"

control Check(in atp_t packet, in bit<16> words, out bool is_valid) {
    apply {
        bit<4> form = packet.lanes[7:4];
        bit<4> type = packet.lanes[3:0];
        bool has_form = form == 1 || form == 3 || form == 4;
        bool is_typed = has_form && type != 0 && (type == 2 || type <= form);
        bool has_proof = packet.flags & ATP_FLAG_PROOF != 0;
        // Elements in a word of each type, as powers of two.
        bit<8> in_form = form == 4 ? 8w4 : (form == 3 ? 8w2 : 8w1);
        bit<8> packets = type == 4 ? in_form >> 2 : (type == 3 ? in_form >> 1 : in_form);
        is_valid = packet.type >= ATP_TYPE_GRADIENT && packet.type <= ATP_TYPE_ACK_LIST;
        is_valid = is_valid && packet.flags & ~ATP_FLAG_ALL == 0;
        if (packet.type == ATP_TYPE_GRADIENT) {
            is_valid = is_valid && is_typed && words != 0;
        } else if (packet.type == ATP_TYPE_ACK) {
            is_valid = is_valid && (words != 0 ? is_typed : packet.lanes == 0);
        } else if (packet.type == ATP_TYPE_NACK) {
            is_valid = is_valid && packet.lanes != 0 && packet.lanes <= ATP_DTYPE_INT8 && words == 0;
        } else if (packet.type == ATP_TYPE_ACK_LIST) {
            is_valid = is_valid && packet.lanes == 0 && words != 0 && words & (ATP_LISTED_ACK_LANES - 1) == 0;
            is_valid = is_valid && words <= ATP_MAX_ACK_LIST_LANES;
        } else {
            is_valid = is_valid && packet.lanes == 0 && (packet.type == ATP_TYPE_PROBE || words == 0);
        }
        is_valid = is_valid && (!has_proof || packet.flags & ATP_FLAG_AUDIT == 0);
        is_valid = is_valid && (!has_proof || form == 0 || (type != 2 && words > ATP_PROOF_LANES));
        is_valid = is_valid && packet.hop <= ATP_LEVELS && packet.window_log2 <= ATP_WINDOW_LOG2_MAX;
        is_valid = is_valid && packet.token != 0;
        is_valid = is_valid && packet.bitmap0 & ~packet.mask0 == 0 && packet.bitmap1 & ~packet.mask1 == 0;
        if (packet.type == ATP_TYPE_GRADIENT) {
            is_valid = is_valid && packet.bitmap1 != 0;
            if (packet.flags & ATP_FLAG_WHOLE == 0) {
                is_valid = is_valid && packet.bitmap0 != 0 && packet.bitmap1 & (packet.bitmap1 - 1) == 0;
            }
        }
        if (packet.part != 0 && packet.type != ATP_TYPE_NACK) {
            is_valid = is_valid && (packet.type == ATP_TYPE_GRADIENT || packet.type == ATP_TYPE_ACK);
            is_valid = is_valid && (packet.type != ATP_TYPE_GRADIENT || packet.flags & ATP_FLAG_BYPASS != 0);
            is_valid = is_valid && (packet.type != ATP_TYPE_ACK || packet.part[5:0] == 0);
            is_valid = is_valid && 6w0 ++ packet.part[7:6] < packets;
        }
    }
}

#endif
