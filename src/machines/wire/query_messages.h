// SPDX-License-Identifier: Apache-2.0
// Questions to a switch, and its answers. wire/control.h describes decoding, threads and failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atp::wire {

// tools/write_wire writes the messages from src/machines/wire/wire.toml.

// A switch on the path to the root. The first is the switch that received the HELLO.
struct PathSwitch {
    std::uint64_t id = 0;           // random, new at each start
    std::uint32_t aggregators = 0;  // that one channel can use
    std::uint16_t lanes = 0;        // of one aggregator

    bool operator==(const PathSwitch&) const = default;
};

// HELLO: requests the path of a switch, and tests whether a message of this length arrives. Sent by: worker, switch,
// tool.
struct Hello {
    std::uint64_t nonce = 0;  // random; the answer repeats it
};

// WELCOME: answer to a HELLO, as long up to 9,000 bytes, with its ECN bits. Sent by: switch.
struct Welcome {
    std::uint64_t nonce = 0;           // of the HELLO
    std::uint32_t received_bytes = 0;  // length of the HELLO as received
    std::vector<PathSwitch> path{};    // from the receiver of the HELLO to the root
    std::string software{};            // such as "atp 0.1.0"
};

// STATS: requests one part of a report; as long as the longest REPORT. Sent by: tool.
struct Stats {
    std::uint64_t nonce = 0;     // random; the answer repeats it
    std::uint32_t snapshot = 0;  // 0: current state; otherwise the snapshot that part 0 named
    std::uint16_t part = 0;      // from 0
    std::uint64_t cookie = 0;    // of the last RETRY to a STATS of this address; 0: none
};

// REPORT: that part of the report. Sent by: switch.
struct Report {
    std::uint64_t nonce = 0;     // of the STATS
    std::uint32_t snapshot = 0;  // number of the report
    std::uint16_t part = 0;      // of this text
    std::uint16_t parts = 0;     // of the report
    std::string text{};          // part of the report, JSON
};

// End of the written part.

}  // namespace atp::wire
