// SPDX-License-Identifier: Apache-2.0
// Parses and prints a scenario's parts, and prints a scenario as a sentence. scenario.h declares the functions for
// topologies and systems.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/scenario.h"

namespace atp::sim {

// One sentence for people. It leaves out settings that seldom matter: to_flags() prints all.
[[nodiscard]] std::string text_of(const Scenario& scenario);

// Node names: switches s0, s1 ..., workers w<job>.<rank> (w<rank> in the first job), servers p<job>. Start and duration
// follow: s1@2ms+5ms, w0.3@10ms, p0@1ms+100ms.
[[nodiscard]] std::optional<Outage> parse_outage(Outage::Kind kind, std::string_view text);
[[nodiscard]] std::string to_string(const Outage& outage);
inline constexpr std::string_view outage_forms =
    "NODE@TIME[+DURATION] with NODE s<switch>, w[<job>.]<rank> or p<job>, for example s1@2ms+5ms";

// A worker of the first job, direction, transport, start and duration: w2:in:tcp@1ms+5ms. Only the worker is required.
[[nodiscard]] std::optional<BackgroundSpec> parse_background(std::string_view text);
[[nodiscard]] std::string to_flag(const BackgroundSpec& spec);  // with the time, which to_string() omits
inline constexpr std::string_view background_forms =
    "w<rank>[:in|:out][:tcp|:rdma][@TIME[+DURATION]], a worker of the first job, for example w2:in:tcp@1ms+5ms";

// Cost per packet and rate of copying: 31ns@64.7Gbps. Either part is optional.
[[nodiscard]] std::optional<HostCost> parse_host_cost(std::string_view text);
[[nodiscard]] std::string to_string(const HostCost& cost);
inline constexpr std::string_view cost_forms = "TIME, RATE, TIME@RATE or papers, for example 31ns@64.7Gbps";

[[nodiscard]] std::optional<LogNormal> parse_log_normal(std::string_view text);
[[nodiscard]] std::string log_normal_text(const LogNormal& distribution);
inline constexpr std::string_view log_normal_forms =
    "MEDIAN:SPREAD or papers, two numbers above 0, the second of the natural logarithm, for example 0.01:1.5";

struct Straggler {
    unsigned rank = 0;
    double factor = 100;
};
[[nodiscard]] std::optional<Straggler> parse_straggler(std::string_view text);
[[nodiscard]] std::string to_string(const Straggler& straggler);
inline constexpr std::string_view straggler_forms = "RANK or RANK:FACTOR with a factor from 1, for example 3:100";

}  // namespace atp::sim
