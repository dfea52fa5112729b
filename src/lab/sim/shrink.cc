// SPDX-License-Identifier: Apache-2.0
#include "sim/shrink.h"

#include <algorithm>
#include <array>
#include <functional>

#include "sim/scenario_table.h"
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
    const std::array<Step, 31> others{
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
        [](Scenario& s) { s.ranks_of_host = 1; },
        [](Scenario& s) { s.groups = false; },
        [](Scenario& s) { s.keys = false; },
        [](Scenario& s) { s.most_packets = 0; },
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
            if (to_flags(next) == to_flags(best.scenario) || problem_of(next)) continue;
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

}  // namespace atp::sim
