// SPDX-License-Identifier: Apache-2.0
// Converts scenarios from and to flags of `atp-lab simulate`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/scenario.h"

namespace CLI {
class App;
}

namespace atp::apps {

// Each flag writes one field of `scenario`, which must outlive the parsing.
void add_scenario_flags(CLI::App& command, sim::Scenario& scenario);

// Node names: switches s0, s1 ..., workers w<job>.<rank> (w<rank> in the first job), servers p<job>. Start and duration
// follow: s1@2ms+5ms, w0.3@10ms, p0@1ms+100ms.
[[nodiscard]] std::optional<sim::Outage> parse_outage(sim::Outage::Kind kind, std::string_view text);
[[nodiscard]] std::string to_string(const sim::Outage& outage);
inline constexpr std::string_view outage_forms =
    "NODE@TIME[+DURATION] with NODE s<switch>, w[<job>.]<rank> or p<job>, for example s1@2ms+5ms";

// Node names as above, with a time: w2:in:tcp@1ms+5ms. All parts but the worker are optional.
[[nodiscard]] std::optional<sim::BackgroundSpec> parse_background(std::string_view text);
inline constexpr std::string_view background_forms =
    "w<rank>[:in|:out][:tcp|:rdma][@TIME[+DURATION]], a worker of the first job, for example w2:in:tcp@1ms+5ms";

// Cost per packet and rate of copying: 31ns@64.7Gbps. Either part is optional.
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

// The flags that differ from the defaults, so that a user can reduce a scenario that was drawn from a seed.
[[nodiscard]] std::string to_flags(const sim::Scenario& scenario);

}  // namespace atp::apps
