// SPDX-License-Identifier: Apache-2.0
// Scenarios as flags of `atp-lab simulate`, in both directions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/scenario.h"

namespace CLI {
class App;
}

namespace atp::apps {

// Each flag writes one field of the scenario, which outlives the parsing.
void add_scenario_flags(CLI::App& command, sim::Scenario& scenario);

// Stable names: switches are s0, s1 ..., workers w<job>.<rank> (w<rank> of the first job), servers p<job>; then when,
// and for how long: s1@2ms+5ms, w0.3@10ms, p0@1ms+100ms.
[[nodiscard]] std::optional<sim::Outage> parse_outage(sim::Outage::Kind kind, std::string_view text);
[[nodiscard]] std::string to_string(const sim::Outage& outage);
inline constexpr std::string_view outage_forms =
    "NODE@TIME[+DURATION] with NODE s<switch>, w[<job>.]<rank> or p<job>, for example s1@2ms+5ms";

// As to_string() names them, with a time of their own: w2:in:tcp@1ms+5ms. All but the worker may be left out.
[[nodiscard]] std::optional<sim::BackgroundSpec> parse_background(std::string_view text);
inline constexpr std::string_view background_forms =
    "w<rank>[:in|:out][:tcp|:rdma][@TIME[+DURATION]], a worker of the first job, for example w2:in:tcp@1ms+5ms";

// 31ns@64.7Gbps: for each packet, and for copying; either may be left out.
[[nodiscard]] std::optional<sim::HostCost> parse_host_cost(std::string_view text);
inline constexpr std::string_view cost_forms = "TIME, RATE, TIME@RATE or papers, for example 31ns@64.7Gbps";

[[nodiscard]] std::optional<LogNormal> parse_log_normal(std::string_view text);
inline constexpr std::string_view log_normal_forms =
    "MEDIAN:SPREAD or papers, two numbers above 0, the second of the natural logarithm, for example 0.01:1.5";

struct Straggler {
    unsigned rank = 0;
    double factor = 100;
};
[[nodiscard]] std::optional<Straggler> parse_straggler(std::string_view text);
inline constexpr std::string_view straggler_forms = "RANK or RANK:FACTOR with a factor from 1, for example 3:100";

// The flags that differ from the defaults, so that a scenario drawn from a seed can be taken apart by hand.
[[nodiscard]] std::string to_flags(const sim::Scenario& scenario);

}  // namespace atp::apps
