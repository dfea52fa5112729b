// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "control/group_range.h"
#include "tensor/number_form.h"
#include "wire/control.h"

namespace atp::comm {

// Where the parameter servers of a job stand.
enum class ServerPlace : std::uint8_t {
    on_switch,  // in the last switch: no further machine, and no further way
    colocated,  // beside the workers, one channel's after the other
    dedicated,  // on hosts of their own (`atp switch --memory 0`)
};

// What a communicator is told; the same on all ranks, but for what is marked "own". Zero: chosen from what is found.
struct Options {
    std::string switch_address;  // own: the switch of this rank, host:port
    // own: the rack of this rank, by any name, where switches in the path aggregate that nobody addresses: next to the
    // workers of a rack, and where racks meet. Every rank of such a rack says the same.
    std::string rack;
    // SwitchML's variants need a switch that serves them, which all ranks name; know no audit, no server and no other
    // scaling or lanes than the usual; end the communicator where a sum leaves 32 bits; and do not notice ranks that do
    // different things.
    wire::ChannelProtocol protocol = wire::ChannelProtocol::atp;
    std::uint32_t channels = 1;  // independent streams, each with an I/O thread: more of them use more cores
    std::uint32_t lanes = 0;     // of a packet; what the way to the switch carries at most
    std::uint32_t window = 0;    // packets that a channel may have under way at most, a power of two
    double scale = 1e8;          // float32 x travels as round(x * scale)
    tensor::Scaling scaling = tensor::Scaling::fixed;
    tensor::LaneType lane_type = tensor::LaneType::int32;
    bool audit = false;  // four bytes a packet that prove each sum
    bool halve = true;   // the window on congestion and loss; off only to repeat experiments
    ServerPlace server = ServerPlace::on_switch;
    std::vector<std::string> dedicated_servers;            // host:port, the channels' in turn
    Duration resend_after = std::chrono::milliseconds(1);  // SwitchML: a packet whose result is so late

    control::Multicast
        multicast{};  // results by it, where every rank hears its group, and copies for each otherwise; IPv4 alone

    Duration join_timeout = std::chrono::seconds(30);  // to find the other ranks and the tree
    Duration timeout = std::chrono::minutes(5);        // of an operation that names none
    std::string name = "atp";                          // tells communicators in one store apart
    std::uint32_t generation = 0;                      // and the attempts at forming one

    Duration spin{0};                // own: poll for so long before sleeping
    std::vector<unsigned> cores;     // own: of the I/O threads, in turn; empty: wherever the kernel likes
    std::uint32_t busy_poll_us = 0;  // own
    bool mmsg = true;                // own, as the next two: see net::UdpConfig
    bool gso = true;
    bool gro = true;
    std::uint32_t socket_buffer_bytes = 8U << 20U;  // own
};

}  // namespace atp::comm
