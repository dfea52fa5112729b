// SPDX-License-Identifier: Apache-2.0
// Parser: Ethernet, IPv4 without options and fragments, UDP of the port of ATP, the header of a packet and its lanes.
// Everything else is accepted unparsed, and leaves as it came, bit for bit. A program that defines ATP_MARKS_JOINS also
// gets the begin of a JOIN.
#ifndef ATP_PARSER_P4
#define ATP_PARSER_P4

#include "headers.p4"
#include "lanes.p4"

// UDP port of either end.
#ifndef ATP_PORT
#define ATP_PORT 4790
#endif

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
#ifdef ATP_MARKS_JOINS
    join_t join;
#endif
    atp_t atp;
    lane_t[ATP_LANES] lanes;
}

// The notes of a packet. A program defines ATP_NOTES_OF_PROGRAM: its own fields.
struct notes_t {
    bit<16> lanes;         // words behind the header
    bit<16> left;          // of them, not yet extracted
    bit<1> is_control;  // a control message, for the agent
    bit<1> changed;     // header or lanes: the checksum is computed again
    ATP_NOTES_OF_PROGRAM
}

parser AtpParser(packet_in packet, out headers_t headers, inout notes_t notes,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            ETHERNET_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition select(headers.ipv4.version, headers.ipv4.header_words, headers.ipv4.flags[0:0],
                          headers.ipv4.fragment, headers.ipv4.protocol) {
            (4, 5, 0, 0, IPV4_UDP): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(headers.udp);
        transition select(headers.udp.source, headers.udp.destination) {
            (ATP_PORT, _): length;
            (_, ATP_PORT): length;
            default: accept;
        }
    }
    // A datagram that fills its frame, with at least a header, whole lanes, and not more of them than fit.
    state length {
        notes.lanes = (headers.udp.bytes - UDP_HEADER_BYTES - ATP_HEADER_BYTES) >> 2;
        bool is_whole = headers.ipv4.bytes == headers.udp.bytes + IPV4_HEADER_BYTES;
        bool is_long = headers.udp.bytes >= UDP_HEADER_BYTES + ATP_HEADER_BYTES && headers.udp.bytes[1:0] == 0;
        bit<1> is_control_length = headers.udp.bytes >= UDP_HEADER_BYTES + 2 ? 1w1 : 1w0;
        bit<1> is_packet_length = is_whole && is_long && notes.lanes <= ATP_LANES ? 1w1 : 1w0;
        transition select(is_control_length, is_packet_length) {
            (1, 0): message;
            (1, 1): first_bytes;
            default: accept;
        }
    }
    state message {
        transition select(packet.lookahead<bit<16>>()) {
            0xA510 &&& 0xFFF8: mark_control;
            default: accept;
        }
    }
    state mark_control {
        notes.is_control = 1;
#ifdef ATP_MARKS_JOINS
        bool is_long = headers.udp.bytes >= UDP_HEADER_BYTES + JOIN_BEGIN_BYTES;
        bit<1> is_join = is_long && packet.lookahead<bit<16>>() == JOIN_BEGIN ? 1w1 : 1w0;
        transition select(is_join) {
            1: join;
            default: accept;
        }
    }
    state join {
        packet.extract(headers.join);
#endif
        transition accept;
    }
    // The first two bytes: version and type. A type from 16 on is a control message.
    state first_bytes {
        transition select(packet.lookahead<bit<16>>()) {
            0xA510 &&& 0xFFF8: mark_control;
            0xA500 &&& 0xFFF8: packet_of_atp;
            default: accept;
        }
    }
    state packet_of_atp {
        packet.extract(headers.atp);
        notes.left = notes.lanes;
        transition select(notes.left) {
            0: accept;
            default: lane;
        }
    }
    state lane {
        packet.extract(headers.lanes.next);
        notes.left = notes.left - 1;
        transition select(notes.left) {
            0: accept;
            default: lane;
        }
    }
}

#endif
