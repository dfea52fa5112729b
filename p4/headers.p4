// SPDX-License-Identifier: Apache-2.0
// Headers of a frame that may hold a packet of ATP. docs/spec/packet.md#header defines their meaning.
#ifndef ATP_HEADERS_P4
#define ATP_HEADERS_P4

// tools/write_wire writes the header from src/machines/wire/wire.toml.
const bit<8> ATP_VERSION = 0xA5;
const bit<8> ATP_CONTROL_VERSION = 0xA5;
const bit<8> ATP_TYPE_CONTROL = 16;
const bit<8> ATP_LEVELS = 2;
const bit<8> ATP_WINDOW_LOG2_MAX = 16;
const bit<16> ATP_WORKER_ALL = 0xFFFF;
const bit<16> ATP_PROOF_LANES = 4;
const bit<16> ATP_LISTED_ACK_LANES = 4;
const bit<16> ATP_MAX_ACK_LIST_LANES = 60;
const bit<16> ATP_HEADER_BYTES = 56;
const bit<16> ATP_LANE_BYTES = 4;

// Types exclude each other, so they share one field. Flags combine, so each is one bit.
const bit<8> ATP_TYPE_GRADIENT = 1;
const bit<8> ATP_TYPE_ACK = 2;
const bit<8> ATP_TYPE_NACK = 3;
const bit<8> ATP_TYPE_PROBE = 4;
const bit<8> ATP_TYPE_WAIT = 5;
const bit<8> ATP_TYPE_FLUSH = 6;
const bit<8> ATP_TYPE_READY = 7;
const bit<8> ATP_TYPE_ACK_LIST = 8;

// Bits of `flags`.
const bit<16> ATP_FLAG_RESEND = 1;
const bit<16> ATP_FLAG_BYPASS = 2;
const bit<16> ATP_FLAG_COLLISION = 4;
const bit<16> ATP_FLAG_ECN = 8;
const bit<16> ATP_FLAG_OVERFLOW = 16;
const bit<16> ATP_FLAG_WHOLE = 32;
const bit<16> ATP_FLAG_AUDIT = 64;
const bit<16> ATP_FLAG_PLAIN = 128;
const bit<16> ATP_FLAG_ALTERNATE_FREE = 256;
const bit<16> ATP_FLAG_ONE_SENDER = 512;
const bit<16> ATP_FLAG_ECN_DOWN = 1024;
const bit<16> ATP_FLAG_PROOF = 2048;
const bit<16> ATP_FLAG_LAST_RANK = 4096;
const bit<16> ATP_FLAG_ALL = 0x1FFF;

// Type of the words behind the header, and form of a fragment.
const bit<8> ATP_DTYPE_NONE = 0;
const bit<8> ATP_DTYPE_INT32 = 1;
const bit<8> ATP_DTYPE_FLOAT32 = 2;
const bit<8> ATP_DTYPE_INT16 = 3;
const bit<8> ATP_DTYPE_INT8 = 4;

header atp_t {
    // ATP_VERSION
    bit<8> version;
    // enum atp_type
    bit<8> type;
    // enum atp_flag
    bit<16> flags;
    // next level that may aggregate it; FLUSH: the level addressed
    bit<8> hop;
    // type and form of the words
    bit<8> lanes;
    // log2 of the slots W: lets a switch derive that seq - W is finished
    bit<8> window_log2;
    // of scaled integers: 2^(scale - 128), 0: the scale of the job
    bit<8> scale;
    // number of the job
    bit<32> job;
    // number of the channel in the job
    bit<16> channel;
    // up: sender; down: receiver, or ATP_WORKER_ALL
    bit<16> worker;
    // random for each incarnation of a job, which it identifies and authorises; never 0
    bit<64> token;
    // number of the fragment
    bit<32> seq;
    // index of the aggregator
    bit<32> index;
    // ACK: index for seq + W; GRADIENT: purpose and format; WAIT: 1 if mismatched; READY: end of what it takes
    bit<32> argument;
    // owner of the fragment; answers about others: worker whose packet caused them; ATP_WORKER_ALL: all or none
    bit<16> peer;
    // number of this sending of the fragment, modulo 256; answers repeat that of the packet that caused them
    bit<8> sending;
    // part of a fragment that travels in several packets
    bit<8> part;
    // included members of one unit; down: members addressed
    bit<32> bitmap0;
    // all members of that unit
    bit<32> mask0;
    // included units, or the unit of bitmap0
    bit<32> bitmap1;
    // all units of the job
    bit<32> mask1;
}

const bit<16> JOIN_BEGIN = 0xA510;
const bit<16> JOIN_BEGIN_BYTES = 123;

header join_t {
    bit<976> before;
    // a switch in the path of a member adds only int32 lanes: set by that switch, or by a receiver of such a JOIN
    bit<8> int32_path;
}
// End of the written part.

// Usual values of `lanes`: the words have the form of the fragment.
const bit<8> ATP_INT32_LANES = 0x11;
const bit<8> ATP_INT16_LANES = 0x33;
const bit<8> ATP_INT8_LANES = 0x44;

header lane_t {
    bit<32> value;
}

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> header_words;
    bit<6> service;
    bit<2> ecn;
    bit<16> bytes;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment;
    bit<8> time_to_live;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header udp_t {
    bit<16> source;
    bit<16> destination;
    bit<16> bytes;
    bit<16> checksum;
}

const bit<16> ETHERNET_IPV4 = 0x0800;
const bit<8> IPV4_UDP = 17;
const bit<16> UDP_HEADER_BYTES = 8;
const bit<16> IPV4_HEADER_BYTES = 20;
const bit<2> ECN_ECT0 = 2;
const bit<2> ECN_CE = 3;

#endif
