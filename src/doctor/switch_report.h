// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atp::doctor {

// The part of a switch that works inside the kernel.
struct KernelReport {
    std::vector<std::pair<std::string, std::string>> interfaces = {};  // and how frames meet the program there
    std::uint32_t aggregators = 0;
    std::uint32_t lanes = 0;
    std::uint64_t oversized = 0;
    std::uint64_t damaged = 0;
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

}  // namespace atp::doctor
