// SPDX-License-Identifier: Apache-2.0
// What the programs for BMv2 have in common: options, checksums, forwarding and the deparser.
//
// Compile-time options: ATP_AGGREGATORS, ATP_JOBS and ATP_AGEING_US.
#ifndef ATP_FRAME_V1MODEL_P4
#define ATP_FRAME_V1MODEL_P4

#include "check.p4"

#ifndef ATP_AGGREGATORS
#define ATP_AGGREGATORS 4096
#endif
#ifndef ATP_JOBS
#define ATP_JOBS 64
#endif
#ifndef ATP_AGEING_US
#define ATP_AGEING_US 500000
#endif

// Lanes by which a frame of BMv2 may grow: its buffer is 512 bytes longer than the frame that arrived.
#define ATP_ROOM_LANES 128

const bit<32> AGENT_SESSION = 1;  // copies of control messages go to this mirroring session

control AtpVerifyChecksum(inout headers_t headers, inout notes_t notes) {
    apply {
#define ATP_LANE_OF_SUM(AT) headers.lanes[AT].value,
        // A datagram with a wrong sum is forwarded unadded: Ingress reads checksum_error.
        verify_checksum(headers.atp.isValid() && headers.udp.checksum != 0,
                        {headers.ipv4.source, headers.ipv4.destination, 8w0, headers.ipv4.protocol, headers.udp.bytes,
                         headers.udp.source, headers.udp.destination, headers.udp.bytes, headers.atp,
                         ATP_EACH_LANE(ATP_LANE_OF_SUM) 16w0},
                        headers.udp.checksum, HashAlgorithm.csum16);
    }
}

control AtpUpdateChecksum(inout headers_t headers, inout notes_t notes) {
    apply {
        update_checksum(notes.changed == 1,
                        {headers.ipv4.version, headers.ipv4.header_words, headers.ipv4.service, headers.ipv4.ecn,
                         headers.ipv4.bytes, headers.ipv4.identification, headers.ipv4.flags, headers.ipv4.fragment,
                         headers.ipv4.time_to_live, headers.ipv4.protocol, headers.ipv4.source,
                         headers.ipv4.destination},
                        headers.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(notes.changed == 1 && headers.udp.checksum != 0,
                        {headers.ipv4.source, headers.ipv4.destination, 8w0, headers.ipv4.protocol, headers.udp.bytes,
                         headers.udp.source, headers.udp.destination, headers.udp.bytes, headers.atp,
                         ATP_EACH_LANE(ATP_LANE_OF_SUM) 16w0},
                        headers.udp.checksum, HashAlgorithm.csum16);
    }
}

control Forwarding(inout headers_t headers, inout standard_metadata_t standard_metadata) {
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }
    action drop() {
        mark_to_drop(standard_metadata);
    }
    // Stations by their address. Unknown ones, and groups, are flooded.
    table stations {
        key = {
            headers.ethernet.destination: exact;
        }
        actions = {
            forward;
            flood;
            drop;
        }
        default_action = flood(1);
        size = 1024;
    }
    apply {
        stations.apply();
    }
}

// The frame goes back to where it came from.
control TurnAround(inout headers_t headers) {
    apply {
        bit<48> station = headers.ethernet.source;
        bit<32> host = headers.ipv4.source;
        bit<16> port = headers.udp.source;
        headers.ethernet.source = headers.ethernet.destination;
        headers.ethernet.destination = station;
        headers.ipv4.source = headers.ipv4.destination;
        headers.ipv4.destination = host;
        headers.udp.source = headers.udp.destination;
        headers.udp.destination = port;
    }
}

control AtpDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.ipv4);
        packet.emit(headers.udp);
#ifdef ATP_MARKS_JOINS
        packet.emit(headers.join);
#endif
        packet.emit(headers.atp);
        packet.emit(headers.lanes);
    }
}

#endif
