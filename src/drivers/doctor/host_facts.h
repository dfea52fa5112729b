// SPDX-License-Identifier: Apache-2.0
// What this host is like, as far as packets care. Facts only: host_checks.h judges them.
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

// The kernel's counts of what it dropped, since it started.
struct KernelDrops {
    std::uint64_t udp_received = 0;
    std::uint64_t udp_receive_buffer_full = 0;
    std::uint64_t udp_send_buffer_full = 0;
    std::uint64_t backlog_processed = 0;
    std::uint64_t backlog_dropped = 0;  // no core took packets off the device's queue in time
};

struct HostFacts {
    std::string kernel_release;          // empty: not told
    std::string clock_source;            // empty: not told
    Duration clock_reading{};            // what one look at the clock takes
    std::vector<std::string> governors;  // different ones of all cores; empty: nothing here governs
    std::size_t cores = 0;               // that this process may run on
    std::optional<double> core_limit;    // how many cores' time the control group grants
    std::uint64_t receive_buffer_limit = 0;
    std::uint64_t send_buffer_limit = 0;
    KernelDrops drops;
    std::vector<Interface> interfaces;  // that are up
    net::UdpReport socket;              // what a socket as workers and switches open it was granted
    std::string socket_error;           // not empty: it could not even be opened
};

// Which buffers a worker's socket asks for.
inline constexpr std::uint32_t wanted_buffer_bytes = 8U << 20U;

// From the files of /proc and /sys under `root` alone; what is missing there keeps its default. Does not wait.
[[nodiscard]] HostFacts read_host_files(const std::filesystem::path& root);
[[nodiscard]] KernelDrops read_kernel_drops(const std::filesystem::path& root);
// All of it: also cores, clock, interfaces, and a socket that sends itself a few packets over the loopback.
[[nodiscard]] HostFacts read_host();

}  // namespace atp::doctor
