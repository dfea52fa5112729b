// SPDX-License-Identifier: Apache-2.0
#include "sim/swarm.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "parallel/for_each.h"
#include "random/random.h"
#include "sim/fabric.h"
#include "sim/scenario_rows.h"
#include "sim/simulation.h"

namespace atp::sim {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t swarm_stream = 0x5a3b;
constexpr std::uint64_t outage_stream = 0x6a02;

Duration milliseconds_between(Random& random, std::uint64_t first, std::uint64_t last) {
    return milliseconds(random.between(first, last));
}

bool is_of_last_switch(const Outage& outage, const TopologySpec& topology) {
    return outage.index + 1 == count_switches(topology);
}

Outage draw_outage(Random& random, const Scenario& scenario) {
    using Kind = Outage::Kind;
    static constexpr std::array kinds{Kind::crash, Kind::pause,  Kind::silence, Kind::leave,
                                      Kind::cut,   Kind::cut_up, Kind::cut_down};
    static constexpr std::array kinds_of_switch{Kind::crash, Kind::pause,  Kind::kill,
                                                Kind::cut,   Kind::cut_up, Kind::cut_down};
    Outage outage;
    if (random.chance(0.6)) {
        outage.node = Outage::Node::worker;
        outage.kind = random.pick(kinds);
        outage.index = static_cast<unsigned>(random.below(scenario.workers()));
    } else {
        outage.index = static_cast<unsigned>(random.below(count_switches(scenario.topology)));
        do {
            outage.kind = random.pick(kinds_of_switch);
        } while (outage.kind >= Kind::cut && is_of_last_switch(outage, scenario.topology));
    }
    outage.at = Time(std::chrono::seconds(1) + milliseconds_between(random, 0, 3500));
    outage.lasts =
        random.chance(0.3) ? milliseconds_between(random, 10, 1500) : milliseconds_between(random, 1500, 8000);
    return outage;
}

// Jobs of seconds, which compute between small sums, in a network in which no process can take loss for a failure: each
// error must name the outage.
Scenario draw_outage_scenario(std::uint64_t seed, bool calm) {
    Random random(seed, outage_stream);
    Scenario scenario;
    scenario.seed = seed;
    scenario.topology = random.chance(0.4) ? TopologySpec{.shape = TopologySpec::Shape::star,
                                                          .first = static_cast<unsigned>(random.between(1, 4))}
                                           : TopologySpec{.shape = TopologySpec::Shape::racks,
                                                          .first = static_cast<unsigned>(random.between(2, 3)),
                                                          .second = static_cast<unsigned>(random.between(1, 2))};
    scenario.placement = random.chance(0.5) ? Placement::shared : Placement::separate;
    scenario.jobs = random.chance(0.7) ? 1 : static_cast<unsigned>(random.between(2, 3));
    scenario.lanes = 8;
    scenario.window_log2 = static_cast<std::uint8_t>(random.between(1, 4));
    scenario.aggregators = 64;
    scenario.bytes = 4 * random.between(8, 60);
    scenario.iterations = static_cast<unsigned>(random.between(20, 70));
    scenario.pause = milliseconds(60);
    scenario.owned_share = random.chance(0.3) ? 1 : 0;
    scenario.start_spread = milliseconds_between(random, 1, 1000);
    scenario.faults.loss = random.pick(std::array{0.0, 0.0, 0.001, 0.01});
    scenario.faults.duplicate = random.pick(std::array{0.0, 0.01, 0.1, 0.5});
    scenario.faults.reorder = random.pick(std::array{0.0, 0.1, 1.0});
    scenario.faults.reorder_delay =
        random.pick(std::array<Duration, 4>{milliseconds(1), milliseconds(5), milliseconds(20), milliseconds(60)});
    scenario.faults.limits_reports = random.chance(0.3);
    if (!calm) scenario.faults.outages = {draw_outage(random, scenario)};
    scenario.deadline = std::chrono::seconds(20);  // later than any process is taken for lost
    scenario.time_limit = Time(std::chrono::seconds(120));
    if (random.chance(0.15)) {
        draw_numbers(random, scenario, 600);
        scenario.window_log2 = 4;  // so that no sum takes seconds
    }
    scenario.in_path = random.chance(0.1);
    if (scenario.may_share_memory() && random.chance(0.1)) {
        scenario.ranks_of_host = static_cast<unsigned>(random.between(2, 3));
    }
    scenario.groups = random.chance(0.2);
    scenario.keys = random.chance(0.25);
    return scenario;
}

// Each window of a tensor takes a round trip, also without faults.
Duration fault_free_time(const Scenario& scenario) {
    const std::uint64_t fragments = scenario.bytes / sizeof(float) / scenario.payload_lanes();
    return (fragments >> scenario.window_log2) * std::chrono::microseconds(200);
}

}  // namespace

Scenario draw_scenario(std::uint64_t seed, SwarmProfile profile) {
    constexpr double share_of_outages = 0.45;
    const bool mixed = profile == SwarmProfile::mixed;
    if (!mixed || Random(seed, swarm_stream - 1).chance(share_of_outages)) {
        return draw_outage_scenario(seed, profile == SwarmProfile::calm);
    }
    // Some drawn scenarios cannot run, for example with more units than a bitmap has bits. The function then draws
    // another scenario from the same seed.
    for (std::uint64_t attempt = 0;; ++attempt) {
        Random random(seed, swarm_stream + attempt);
        Scenario scenario;
        scenario.seed = seed;
        for (const ScenarioRow& row : scenario_table()) {
            if (row.draw != nullptr) row.draw(random, scenario);
        }
        if (!problem_of(scenario)) {
            if (scenario.deadline) *scenario.deadline += fault_free_time(scenario);
            return scenario;
        }
    }
}

namespace {

void add_to_summary(const Report& report, SwarmSummary& summary) {
    ++summary.runs;
    if (!report.passed()) ++summary.failures;
    summary.packet_hops += report.packet_hops;
    const auto formed_again = [](const JobReport& job) { return job.incarnations > 1; };
    summary.formed_again += std::ranges::any_of(report.jobs, formed_again) ? 1U : 0U;
    for (const JobReport& job : report.jobs) {
        summary.fragments += job.fragments();
        summary.incarnations += job.incarnations;
        summary.errors += job.failed_ranks;
        summary.resends += job.resends();
        if (!job.finished || job.finished->time_since_epoch() <= summary.slowest) continue;
        summary.slowest = job.finished->time_since_epoch();
        summary.slowest_seed = report.seed;
    }
    for (const LinkReport& link : report.links) summary.lost += link.counters.lost + link.counters.dropped;
}

}  // namespace

SwarmSummary run_swarm(const SwarmOptions& options) {
    SwarmSummary summary;
    std::mutex mutex;
    for_each_in_parallel(options.runs, options.threads, options.stop, [&](std::uint64_t mine) {
        const Report report = run(draw_scenario(options.first_seed + mine, options.profile),
                                  {.trace = nullptr, .stop = options.stop, .progress = {}});
        const std::lock_guard lock(mutex);
        if (report.interrupted) return;
        add_to_summary(report, summary);
        if (!report.passed() && options.failed) options.failed(report);
        if (options.progress) options.progress(summary.runs);
    });
    return summary;
}

}  // namespace atp::sim
