// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atp::client {

// Of fragments inside the kernel, of one job or of all: begun there, ended there, and fetched by workers that waited in
// vain for the end.
struct KernelFragments {
    std::uint64_t claimed = 0;
    std::uint64_t completed = 0;
    std::uint64_t fetched = 0;
};

// The part of a switch that works inside the kernel.
struct KernelReport {
    std::vector<std::pair<std::string, std::string>> interfaces = {};  // and how frames meet the program there
    std::uint32_t aggregators = 0;
    std::uint32_t lanes = 0;
    std::uint64_t oversized = 0;
    std::uint64_t damaged = 0;
    std::uint64_t not_admitted = 0;
    std::uint64_t passing_jobs = 0;               // at present
    std::vector<KernelFragments> fragments = {};  // of each job that is there, and of all since the start
};

// What matters here of a switch's own report (`atp stats --json`), summed over its threads.
struct SwitchReport {
    std::string parent = {};  // empty: it is the last
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

// Nothing where the text is no such report.
[[nodiscard]] std::optional<SwitchReport> read_switch_report(std::string_view text);

}  // namespace atp::client
