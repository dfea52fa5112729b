// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "control/group_range.h"
#include "endpoint/rank_protocol.h"
#include "protocol/policy_hooks.h"
#include "tensor/number_form.h"
#include "wire/control.h"

namespace atp::comm {

// Location of a job's parameter servers.
enum class ServerPlace : std::uint8_t {
    on_switch,  // in the last switch: needs no further host and no further hop
    colocated,  // in the processes of the workers; the channels take them in turn
    dedicated,  // on separate hosts (`atp switch --memory 0`)
};

// Settings of a communicator: equal on all ranks, except those marked "own". 0: chosen by what the paths allow.
struct Options {
    std::string switch_address;  // own: switch of this rank, host:port
    // own: rack of this rank, any name, equal on all ranks of the rack. Set it if switches without an address aggregate
    // in the path: next to the workers of a rack, and where racks meet.
    std::string rack;
    std::uint32_t channels = 1;  // independent streams, one I/O thread each: more streams use more cores
    std::uint32_t lanes = 0;     // per packet; 0: as many as all paths carry
    std::uint32_t window = 0;    // most packets of a channel in flight, a power of two; 0: by packet length
    double scale = 1e8;          // float32 x travels as round(x * scale)
    tensor::Scaling scaling = tensor::Scaling::fixed;
    tensor::LaneType lane_type = tensor::LaneType::int32;
    bool audit = false;  // one lane more per packet, which proves each sum
    ServerPlace server = ServerPlace::on_switch;
    std::vector<std::string> dedicated_servers;  // host:port; the channels take them in turn

    control::Multicast multicast{};  // of results, if all ranks receive the group; else one copy per rank; IPv4

    Duration join_timeout = std::chrono::seconds(30);  // to find the other ranks and the tree; not compared
    Duration timeout = std::chrono::minutes(5);        // of an operation without a deadline; not compared
    std::string name = "atp";                          // distinguishes communicators that share a store
    std::uint32_t generation = 0;                      // distinguishes attempts to form this communicator

    Duration spin{0};                // own: time to poll before the thread sleeps
    std::vector<unsigned> cores;     // own: of the I/O threads, in turn; empty: chosen by the kernel
    std::uint32_t busy_poll_us = 0;  // own, as the next three: see net::UdpConfig
    bool mmsg = true;
    bool gso = true;
    bool gro = true;
    std::uint32_t socket_buffer_bytes = 8U << 20U;  // own

    // For experiments: a protocol other than ATP, which every rank must name; nullptr: ATP.
    std::shared_ptr<const endpoint::RankProtocol> protocol{};
    // For experiments: rules of the workers. Borrowed: the object must outlive the communicator. Servers on a switch
    // use the protocol's own rules. nullptr: the protocol's own rules.
    const protocol::PolicyHooks* policy = nullptr;
};

[[nodiscard]] inline wire::ChannelProtocol protocol_of(const Options& options) {
    return options.protocol == nullptr ? wire::ChannelProtocol::atp : options.protocol->number();
}

}  // namespace atp::comm
