// SPDX-License-Identifier: Apache-2.0
// One-way traffic over loopback between two threads, through the shipped sockets and event loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "wire/address.h"

namespace atp::bench {

// Kernel features to use. Each row of the table adds one feature to the row above.
struct Mode {
    const char* name;
    bool mmsg;
    bool gso;
    bool gro;
};

struct Traffic {
    Mode mode{};
    wire::Family family = wire::Family::ipv4;
    std::uint32_t packet_bytes = 0;
    double seconds = 0;  // measured time, after a warm-up of a fifth of it
};

struct Outcome {
    double gbit_per_s = 0;  // of UDP payload that arrived
    double packets_per_s = 0;
    double packets_per_send_call = 0;
    double packets_per_receive_call = 0;
    double lost_share = 0;  // of the packets sent
    bool intact = false;    // every packet arrived with its size and number
    std::string gave_up;    // features of the mode that the kernel lacks; the figures are then those of another mode
};

// Sends packets and measures. The packets in flight fit the receive buffer, so that the receiver drops none.
[[nodiscard]] Result<Outcome> carry(const Traffic& traffic);

}  // namespace atp::bench
