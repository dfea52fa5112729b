// SPDX-License-Identifier: Apache-2.0
#include "sim/shrink.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/units.h"
#include "sim/scenario_text.h"
#include "sim/simulation.h"

namespace atp::sim {
namespace {

// A step changes the scenario, or leaves it as it is if there is nothing to take away.
using Step = std::function<void(Scenario&)>;

template <class T>
void halve(T& value, T least) {
    value = std::max<T>(value / 2, least);
}

void remove_rank(unsigned& number) { number = std::max(number - 1, 1U); }

std::vector<Step> steps_for(const Scenario& scenario) {
    std::vector<Step> steps;
    for (std::size_t i = 0; i < scenario.faults.outages.size(); ++i) {
        steps.emplace_back(
            [i](Scenario& s) { s.faults.outages.erase(s.faults.outages.begin() + static_cast<std::ptrdiff_t>(i)); });
    }
    const std::array<Step, 28> others{
        [](Scenario& s) { s.jobs = 1; },
        [](Scenario& s) { remove_rank(s.topology.first); },
        [](Scenario& s) { remove_rank(s.topology.second); },
        [](Scenario& s) { s.topology = {.shape = TopologySpec::Shape::star, .first = 2}; },
        [](Scenario& s) { s.channels = 1; },
        [](Scenario& s) { s.tensors = 1; },
        [](Scenario& s) { halve(s.iterations, 1U); },
        [](Scenario& s) { halve(s.bytes, std::uint64_t{sizeof(float)} * s.tensors * s.channels); },
        [](Scenario& s) { s.faults.loss = 0; },
        [](Scenario& s) { s.faults.duplicate = 0; },
        [](Scenario& s) { s.faults.reorder = 0; },
        [](Scenario& s) { s.faults.replay = 0; },
        [](Scenario& s) { s.straggler.reset(); },
        [](Scenario& s) { s.paths = 1; },
        [](Scenario& s) { s.float_share = s.overflow_share = s.plain_share = 0; },
        [](Scenario& s) { s.owned_share = 0; },
        [](Scenario& s) { s.scaling = tensor::Scaling::fixed; },
        [](Scenario& s) { s.lane_type = tensor::LaneType::int32, s.int32_switch.reset(); },
        [](Scenario& s) { s.systems.clear(); },
        [](Scenario& s) { s.aggregators = 4096; },
        [](Scenario& s) { s.first_seq = 0; },
        [](Scenario& s) { s.pause = s.stagger = s.start_spread = {}; },
        [](Scenario& s) { s.train = 1; },
        [](Scenario& s) { s.server = ServerPlacement::on_switch; },
        [](Scenario& s) { s.aggregation = Aggregation::everywhere; },
        [](Scenario& s) { s.in_path = false; },
        [](Scenario& s) { s.groups = false; },
        [](Scenario& s) { s.queue_bytes = Scenario{}.queue_bytes, s.rate_bits_per_s = Scenario{}.rate_bits_per_s; },
    };
    steps.insert(steps.end(), others.begin(), others.end());
    return steps;
}

bool stopped(const std::atomic<bool>* stop) { return stop != nullptr && stop->load(std::memory_order_relaxed); }

}  // namespace

Shrunk shrink(const Scenario& scenario, unsigned most_runs, const std::atomic<bool>* stop) {
    Shrunk best{.scenario = scenario, .failures = run(scenario).failures, .runs = 1};
    for (bool smaller = true; smaller;) {
        smaller = false;
        // A step may remove an outage, so the list is for the best scenario so far.
        for (std::size_t i = 0; i < steps_for(best.scenario).size(); ++i) {
            if (best.runs >= most_runs || stopped(stop)) return best;
            Scenario next = best.scenario;
            steps_for(best.scenario)[i](next);
            if (text_of(next) == text_of(best.scenario) || problem_of(next)) continue;
            ++best.runs;
            const Report report = run(next, {.trace = nullptr, .stop = stop, .progress = {}});
            if (report.passed() || report.interrupted) continue;
            best.scenario = next;
            best.failures = report.failures;
            smaller = true;
        }
    }
    return best;
}

std::string text_of(const Scenario& s) {
    const auto plural = [](std::uint64_t count, std::string_view what) {
        return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    std::string text =
        fmt::format("{} of {} in {}", plural(s.jobs, "job"), plural(s.workers_of(0), "rank"), to_string(s.topology));
    text += fmt::format(", {} of {} bytes in {} on {}", plural(s.iterations, "iteration"), s.bytes,
                        plural(s.tensors, "tensor"), plural(s.channels, "channel"));
    text += fmt::format(", {} lanes, window {}, {}", s.lanes, 1U << s.window_log2, plural(s.aggregators, "aggregator"));
    const auto add = [&](bool is_so, const std::string& part) { text += is_so ? ", " + part : ""; };
    add(s.server == ServerPlacement::dedicated, "dedicated servers");
    add(s.server == ServerPlacement::shared, "servers on one host");
    add(s.server == ServerPlacement::colocated, "servers on hosts of workers");
    add(s.aggregation == Aggregation::racks, "only racks aggregate");
    add(s.aggregation == Aggregation::nowhere, "switches only forward");
    add(s.in_path, "switches in the path");
    add(s.groups, "results by group");
    add(s.placement == Placement::separate && s.jobs > 1, "hosts apart");
    add(!s.systems.empty(), "SwitchML");
    add(s.first_seq != 0, fmt::format("first sequence number {:#x}", s.first_seq));
    add(s.float_share > 0, fmt::format("{:.0f} % floats", 100 * s.float_share));
    add(s.overflow_share > 0, fmt::format("{:.0f} % near overflow", 100 * s.overflow_share));
    add(s.plain_share > 0, fmt::format("{:.0f} % integers", 100 * s.plain_share));
    add(s.owned_share > 0, fmt::format("{:.0f} % with owners", 100 * s.owned_share));
    add(s.scaling == tensor::Scaling::dynamic, "dynamic scaling");
    add(s.lane_type == tensor::LaneType::int16, "int16");
    add(s.lane_type == tensor::LaneType::int8, "int8");
    add(s.int32_switch.has_value(), fmt::format("only int32 past s{}", s.int32_switch.value_or(0)));
    add(s.train > 1, fmt::format("trains of {}", s.train));
    add(s.paths > 1, plural(s.paths, "path"));
    add(s.queue_bytes != Scenario{}.queue_bytes, fmt::format("queues of {} bytes", s.queue_bytes));
    add(s.straggler.has_value(), fmt::format("rank {} slow", s.straggler.value_or(0)));
    add(s.pause + s.stagger + s.start_spread != Duration::zero(), "pauses between sums and starts");
    const Faults& f = s.faults;
    add(f.loss > 0, fmt::format("loss {} %", 100 * f.loss));
    add(f.duplicate > 0, fmt::format("duplicates {} %", 100 * f.duplicate));
    add(f.reorder > 0, fmt::format("{} % late by up to {:.3f} ms", 100 * f.reorder, to_milliseconds(f.reorder_delay)));
    add(f.replay > 0, "packets of the incarnation before");
    add(f.from != Time{}, fmt::format("from {:.3f} ms", to_milliseconds(f.from.time_since_epoch())));
    add(f.until != never, fmt::format("until {:.3f} ms", to_milliseconds(f.until.time_since_epoch())));
    for (const Outage& outage : f.outages) {
        static constexpr std::array verbs{"crash", "pause", "kill", "silence", "leave", "cut", "cut up", "cut down"};
        text += fmt::format(", {} {}", verbs[static_cast<std::size_t>(outage.kind)], to_string(outage));
    }
    if (f.outages.empty()) text += ", no outage";
    return text;
}

}  // namespace atp::sim
