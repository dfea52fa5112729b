// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "control/group_range.h"
#include "net/transport.h"
#include "net/udp_config.h"
#include "observe/events.h"
#include "protocol/congestion_window.h"
#include "protocol/index_rule.h"
#include "tensor/number_form.h"
#include "wire/control.h"

namespace atp::comm {

// Location of a job's parameter servers.
enum class ServerPlace : std::uint8_t {
    on_switch,  // in the last switch: needs no further host and no further hop
    colocated,  // in the processes of the workers; the channels take them in turn
    dedicated,  // on separate hosts (`atp switch --memory 0`)
    automatic,  // where the busiest link has the least to carry (control::best_layout)
    hosts,      // on every host; no switch adds
    leaves,     // on every host, behind the switches of racks
    racks,      // the same; in a rack without a switch its hosts take turns as one
};

// What the ranks of a job prove about its sums. docs/spec/sealing.md is normative.
enum class Seal : std::uint8_t {
    none,
    operation,  // after each operation, that no switch changed its sums
};

// Settings of a communicator. docs/reference/options.md describes each: name, default, accepted values, and whether all
// ranks need the same value.
struct Options {
    // tools/write_options writes this from src/drivers/comm/option_table.cc.
    // Address of the switch of this rank (host:port or [host]:port). Own. [none: hosts serve the sums, each at its
    // listen address]
    std::string switch_address;
    // Address at which this rank may serve a part of the sums to the other hosts (host:port, host:0 for any port, or
    // host:first-last). Own. [none]
    std::string listen;
    // Name of the rack of this rank; needed if the racks have switches that workers do not address. Own. [none]
    std::string rack;
    // Rate of the link of this host in each direction, to choose a layout (such as 25gbit). Own. [0: the slowest that a
    // rank names]
    double link_rate = 0;
    // Name of the link above the rack of this host, which ranks with the same name share. Own. [the name in rack,
    // otherwise the switch of this rank]
    std::string uplink;
    // Rate of that link in each direction, to choose a layout (such as 25gbit). Own. [0: the rate of the slowest host]
    double uplink_rate = 0;
    // Independent streams of a rank, each with an I/O thread (1 to 64). [1]
    std::uint32_t channels = 1;
    // Lanes of a packet (2 to 16,362). [0: as many as all paths carry]
    std::uint32_t lanes = 0;
    // Maximum number of packets of a channel in flight (a power of two, 1 to 65,536). [0: the largest that fits in 256
    // KiB, from 8 to 256]
    std::uint32_t window = 0;
    // Factor between a float32 value and its integer if scaling is fixed: x is sent as round(x * scale) (above 0).
    // [1e8]
    double scale = 1e8;
    // Scale of float values: fixed for the job, or following the magnitude of earlier sums (fixed, dynamic). [dynamic]
    tensor::Scaling scaling = tensor::Scaling::dynamic;
    // Type of a scaled value in a packet; auto: int16 for bfloat16 and float16 if the scale is dynamic (int32, int16,
    // auto, int8). [auto]
    tensor::LaneType lane_type = tensor::LaneType::automatic;
    // Add an audit lane of four bytes to each packet, which the server and the workers check. [false]
    bool audit = false;
    // Send each result once, to a multicast group, if every rank receives the group (off, on, or IPv4 groups such as
    // 239.192.0.0/16). [off]
    control::Multicast multicast{};
    // Layout: where the servers are, and which switches add (switch, colocated, dedicated, auto, hosts, leaves, racks).
    // [auto]
    ServerPlace server = ServerPlace::automatic;
    // Addresses of dedicated parameter servers; the channels take them in turn (host:port). [none]
    std::vector<std::string> dedicated_servers;
    // Ranks that can share memory sum there. [true]
    bool host_level = true;
    // Name of the host of this rank; ranks with different names never share memory (any word). Own. [none]
    std::string host_name;
    // Longest wait for the other ranks and the tree of switches (above 0). Own. [30s]
    Duration join_timeout = std::chrono::seconds(30);
    // Timeout of an operation that is called without a timeout (above 0). Own. [300s]
    Duration timeout = std::chrono::seconds(300);
    // Name of the job, which switches show beside its number (any name, of which the first 63 bytes count). Own. [the
    // name in ATP_JOB_NAME, otherwise torchrun's or Slurm's id of the job]
    std::string job_name;
    // Name of the communicator; it separates communicators that share a store. [atp]
    std::string name = "atp";
    // Number of the attempt to form this communicator; increase it after a failure. [0]
    std::uint32_t generation = 0;
    // Time for which an I/O thread polls before it sleeps (0 or longer). Own. [0]
    Duration spin = std::chrono::seconds(0);
    // Processor cores of the I/O threads, in turn (numbers of processor cores). Own. [chosen by the kernel]
    std::vector<unsigned> cores;
    // Time in microseconds for which the kernel polls the network device (SO_BUSY_POLL). Own. [0]
    std::uint32_t busy_poll_us = 0;
    // Send and receive several packets per system call. Own. [true]
    bool mmsg = true;
    // Send several packets as one buffer, which the kernel divides. Own. [true]
    bool gso = true;
    // Receive several packets as one buffer, which the kernel joins. Own. [true]
    bool gro = true;
    // Bytes of a socket's buffer, per direction. Own. [8388608]
    std::uint32_t socket_buffer_bytes = 8388608;
    // File that gets a line for each packet sent and received (a path, with %r for the rank, %p for the process and %h
    // for the host). Own. [the file in ATP_TRACE, otherwise none]
    std::string trace;
    // Key of the team, which seals what ranks tell each other and proves to switches who joins (a path). Own. [the file
    // in ATP_KEY_FILE, otherwise none]
    std::string key_file;
    // What ranks prove with their key: of each operation, that no switch changed its sums (none, operation). [none]
    Seal seal = Seal::none;
    // End of the written part.

    // Receives each line of this rank's log, on any thread. Empty: standard error gets lines at `warn` and above, or at
    // the level of ATP_LOG.
    std::function<void(observe::Severity, std::string_view line)> log_receiver{};

    // The process of this rank runs the switch that `switch_address` names. Other ranks name this rank if it ends. Own.
    bool hosts_switch = false;

    // Rank 0 starts a switch if the ranks need the network: use_network() then sets its address for all ranks.
    bool starts_switch = false;
    // Called once if the ranks need the network, with the switch that rank 0 names, or none: may set switch_address,
    // listen and hosts_switch of this rank. Empty: the options name them.
    std::function<Result<void>(Options& own, const std::string& offered)> use_network{};

    // Congestion control of the workers. Own.
    protocol::CongestionConfig congestion{};

    // For experiments, which set them on all ranks of a job.
    // How slots find their aggregators, which also the hosts of servers need; nullptr: the hash of the protocol.
    std::shared_ptr<const protocol::IndexRule> indices{};
    // Number of the job; nullopt: rank 0 draws it.
    std::optional<std::uint32_t> job{};
    // Opens the transport of a channel; empty: a UDP socket.
    std::function<Result<std::unique_ptr<net::Transport>>(const net::UdpConfig&)> open_transport{};
};

}  // namespace atp::comm
