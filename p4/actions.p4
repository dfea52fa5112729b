// SPDX-License-Identifier: Apache-2.0
// What a switch does with a packet, and what it counts: src/machines/protocol/decide.h, whose names this file keeps.
#ifndef ATP_ACTIONS_P4
#define ATP_ACTIONS_P4

// enum atp_packet_action
const bit<8> ATP_PACKET_DROP = 0;
const bit<8> ATP_PACKET_FORWARD = 1;
const bit<8> ATP_PACKET_RETURN = 2;

// enum atp_switch_event
const bit<8> ATP_EVENT_PASSED = 0;
const bit<8> ATP_EVENT_CLAIMED = 1;
const bit<8> ATP_EVENT_ADDED = 2;
const bit<8> ATP_EVENT_COMPLETED = 3;
const bit<8> ATP_EVENT_SINGLE = 4;
const bit<8> ATP_EVENT_DUPLICATE = 5;
const bit<8> ATP_EVENT_REEMITTED = 6;
const bit<8> ATP_EVENT_COLLIDED = 7;
const bit<8> ATP_EVENT_BYPASSED = 8;
const bit<8> ATP_EVENT_LATE = 9;
const bit<8> ATP_EVENT_RESENT = 10;
const bit<8> ATP_EVENT_FETCHED = 11;
const bit<8> ATP_EVENT_RELEASED = 12;
const bit<8> ATP_EVENT_EXPIRED = 13;
const bit<8> ATP_EVENT_TAKEN_OVER = 14;
const bit<8> ATP_EVENT_SUPERSEDED = 15;
const bit<8> ATP_EVENT_FLUSHED = 16;
const bit<8> ATP_EVENT_CLOSED = 17;
const bit<8> ATP_EVENT_MISFIT = 18;

#endif
