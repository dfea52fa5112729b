// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atp::client {

// Counts of fragments in a kernel switch, of one job or of all jobs.
struct KernelFragments {
    std::uint64_t claimed = 0;    // begun in the kernel
    std::uint64_t completed = 0;  // completed in the kernel
    std::uint64_t fetched = 0;    // incomplete, and fetched by a resend
};

// The part of a switch that runs in the kernel.
struct KernelReport {
    std::vector<std::pair<std::string, std::string>> interfaces = {};  // name and XDP mode of each
    std::uint32_t aggregators = 0;
    std::uint32_t lanes = 0;
    std::uint64_t oversized = 0;
    std::uint64_t damaged = 0;
    std::uint64_t not_admitted = 0;
    std::uint64_t passing_jobs = 0;               // jobs that are forwarded unaggregated now
    std::vector<KernelFragments> fragments = {};  // one entry for each job; the last one is of all jobs since the start
};

// The fields of a switch's report (`atp stats --json`) that diagnosis uses, summed over the threads of the switch.
struct SwitchReport {
    std::string parent = {};  // address; empty: this switch is the last
    bool parent_answers = false;
    std::uint64_t received = 0;
    std::uint64_t dropped_by_kernel = 0;
    std::uint64_t refused_by_kernel = 0;
    std::uint64_t joins_refused = 0;
    std::uint64_t threads = 0;
    bool emulates_ports = false;
    double emulated_loss = 0;
    std::optional<KernelReport> kernel = {};
};

// nullopt: the text is no report of a switch.
[[nodiscard]] std::optional<SwitchReport> read_switch_report(std::string_view text);

}  // namespace atp::client
