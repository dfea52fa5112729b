// SPDX-License-Identifier: Apache-2.0
// Facts of this host that affect packets. host_checks.h evaluates them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "net/udp_report.h"

namespace atp::doctor {

struct Interface {
    std::string name;
    bool loopback = false;
    bool multicast = false;
};

// Counters of the kernel, since it started.
struct KernelDrops {
    std::uint64_t udp_received = 0;
    std::uint64_t udp_receive_buffer_full = 0;
    std::uint64_t udp_send_buffer_full = 0;
    std::uint64_t backlog_processed = 0;
    std::uint64_t backlog_dropped = 0;  // no core took packets off the device's queue in time
};

struct HostFacts {
    std::string kernel_release;          // empty: unknown
    std::string clock_source;            // empty: unknown
    Duration clock_reading{};            // duration of one reading of the clock
    std::vector<std::string> governors;  // of all cores, without repetitions; empty: none
    std::size_t cores = 0;               // that this process may run on
    std::optional<double> core_limit;    // cores' time that the control group grants; nullopt: no limit
    std::uint64_t receive_buffer_limit = 0;
    std::uint64_t send_buffer_limit = 0;
    KernelDrops drops;
    std::vector<Interface> interfaces;  // that are up
    net::UdpReport socket;              // of a socket with the options of workers and switches
    std::string socket_error;           // not empty: the socket could not be opened
};

// Size of the buffers that a worker's socket requests.
inline constexpr std::uint32_t requested_buffer_bytes = 8U << 20U;

// Reads files of /proc and /sys under `root` only; a fact whose file is missing keeps its default. Does not wait.
[[nodiscard]] HostFacts read_host_files(const std::filesystem::path& root);
[[nodiscard]] KernelDrops read_kernel_drops(const std::filesystem::path& root);
// Reads all facts: also cores, clock and interfaces, and a socket that sends itself a few packets over loopback.
[[nodiscard]] HostFacts read_host();

}  // namespace atp::doctor
