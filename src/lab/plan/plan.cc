// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "plan/evaluation.h"

namespace atp::plan {
namespace {

using Kind = System::Kind;

constexpr std::size_t options_without_switches = 3;
// Share of an iteration: shorter waits are not reported.
constexpr double noticeable = 0.05;
constexpr double memory_noticeable = 0.02;

class Planner {
  public:
    explicit Planner(const Cluster& cluster) : cluster_(cluster), network_(cluster) {}

    Plan make() {
        add_options();
        plan_.jobs.resize(cluster_.jobs.size());
        for (const Option& option : plan_.options) try_option(option.system);
        for (JobPlan& job : plan_.jobs) job.gain = gain_of(job);
        for (std::size_t job = 0; job < cluster_.jobs.size(); ++job) {
            plan_.jobs[job].computes = cluster_.jobs[job].workload.compute();
            plan_.without.push_back(*plan_.jobs[job].iterations.front());
        }
        plan_switches();
        find_bottlenecks();
        choose_purchases();
        try_shortages();
        return std::move(plan_);
    }

  private:
    [[nodiscard]] std::size_t switches() const { return cluster_.switches.size(); }
    [[nodiscard]] const System& everything() const { return plan_.options.back().system; }

    // Whether the switch could aggregate for some job.
    [[nodiscard]] bool is_candidate(std::size_t at) const {
        return cluster_.switches[at].aggregates &&
               std::ranges::any_of(cluster_.jobs, [&](const Job& job) { return cluster_.serves(at, job); });
    }

    void add_options() {
        plan_.options = {{"server", "one server", {.kind = Kind::server, .aggregates = {}}},
                         {"servers", "N servers", {.kind = Kind::servers, .aggregates = {}}},
                         {"ring", "ring", {.kind = Kind::ring, .aggregates = {}}}};
        std::vector<bool> leaves(switches());
        std::vector<bool> root(switches());
        std::vector<bool> all(switches());
        for (std::size_t at = 0; at < switches(); ++at) {
            all[at] = is_candidate(at);
            (at == cluster_.root ? root : leaves)[at] = all[at];
        }
        const std::vector<bool> none(switches());
        const bool has_leaves = leaves != none;
        if (has_leaves && root != none) {
            plan_.options.push_back({"leaves", "leaves", {.kind = Kind::atp, .aggregates = leaves}});
            plan_.options.push_back({"root", "root", {.kind = Kind::atp, .aggregates = std::move(root)}});
        }
        if (has_leaves) {
            plan_.options.push_back(
                {"hosts", "leaves and hosts", {.kind = Kind::hosts, .aggregates = std::move(leaves)}});
        }
        plan_.options.push_back({"all", "all switches", {.kind = Kind::atp, .aggregates = std::move(all)}});
    }

    [[nodiscard]] std::vector<JobOutcome> outcomes(const System& system) const {
        System sized = system;
        sized.aggregates.resize(switches());
        return evaluate(network_, sized, memories_of(cluster_, sized.aggregates));
    }

    void try_option(const System& system) {
        const std::vector<JobOutcome> found = outcomes(system);
        for (std::size_t job = 0; job < found.size(); ++job) {
            const bool possible = is_possible(cluster_, job, system);
            plan_.jobs[job].iterations.push_back(possible ? std::optional(found[job].iteration) : std::nullopt);
        }
    }

    [[nodiscard]] static double gain_of(const JobPlan& job) {
        const auto sooner = [](const std::optional<Duration>& a, const std::optional<Duration>& b) {
            return a.value_or(Duration::max()) < b.value_or(Duration::max());
        };
        const auto middle = job.iterations.begin() + options_without_switches;
        const auto without = std::min_element(job.iterations.begin(), middle, sooner);
        const auto with = std::min_element(middle, job.iterations.end(), sooner);
        if (!*with) return 1;
        return static_cast<double>((*without)->count()) / static_cast<double>((*with)->count());
    }

    void plan_switches() {
        const std::size_t jobs = cluster_.jobs.size();
        const std::vector<bool> everybody(jobs, true);
        const Memories memories = memories_of(cluster_, everything().aggregates);
        const Rush truth = Rates(network_, everything(), memories).rush(everybody);
        for (std::size_t job = 0; job < jobs; ++job) plan_.jobs[job].bytes_per_s = truth.rates[job];
        for (std::size_t at = 0; at < switches(); ++at) {
            plan_.switches.push_back({.aggregators = memories[at], .requested = {}, .added = truth.added[at]});
        }
        Rates demands(network_, everything(), Memories(switches(), unbounded));
        demand(demands.rush(everybody));
        for (std::size_t job = 0; job < jobs; ++job) {
            std::vector<bool> alone(jobs);
            alone[job] = true;
            demand(demands.rush(alone));
        }
    }

    void demand(const Rush& rush) {
        for (std::size_t at = 0; at < switches(); ++at) {
            SwitchPlan& one = plan_.switches[at];
            if (one.requested.empty()) one.requested = rush.requested[at];
            const double together = std::accumulate(rush.requested[at].begin(), rush.requested[at].end(), 0.0);
            one.requested_at_most = std::max(one.requested_at_most, together);
        }
    }

    void find_bottlenecks() {
        const std::vector<JobOutcome> now = outcomes(everything());
        const std::vector<JobOutcome> roomy = evaluate(network_, everything(), Memories(switches(), unbounded));
        for (std::size_t job = 0; job < now.size(); ++job) {
            JobPlan& planned = plan_.jobs[job];
            const auto iteration = static_cast<double>(now[job].iteration.count());
            planned.waits = std::max(0.0, 1 - static_cast<double>(planned.computes.count()) / iteration);
            if (planned.waits < noticeable) continue;
            const bool short_of_memory =
                iteration > static_cast<double>(roomy[job].iteration.count()) * (1 + memory_noticeable);
            planned.bottleneck = short_of_memory
                                     ? Bottleneck{.kind = Bottleneck::Kind::memory, .at = shortest_memory(job)}
                                     : longest_limit(now[job].limited);
        }
    }

    [[nodiscard]] std::size_t shortest_memory(std::size_t job) const {
        std::size_t found = cluster_.last_switch(cluster_.jobs[job]);
        for (std::size_t at = 0; at < switches(); ++at) {
            if (!cluster_.serves(at, cluster_.jobs[job])) continue;
            if (plan_.switches[at].added < plan_.switches[found].added) found = at;
        }
        return found;
    }

    [[nodiscard]] Bottleneck longest_limit(const std::vector<Duration>& limited) const {
        const auto longest = static_cast<std::size_t>(std::ranges::max_element(limited) - limited.begin());
        if (longest >= network_.links().size()) return {.kind = Bottleneck::Kind::window};
        const Link& link = network_.links()[longest];
        switch (link.kind) {
            case Link::Kind::worker: return {.kind = Bottleneck::Kind::worker_link, .at = link.at};
            case Link::Kind::uplink: return {.kind = Bottleneck::Kind::uplink, .at = link.at};
            case Link::Kind::server: return {.kind = Bottleneck::Kind::server_link, .at = link.at};
            case Link::Kind::card: return {.kind = Bottleneck::Kind::card, .at = link.at};
        }
        return {};
    }

    struct Cost {
        double slowness = 0;  // sum of the logarithms of all iterations: halving any of them has the same weight
        double bytes = 0;     // of an iteration of each job, on all links
        std::vector<Duration> iterations;
    };

    [[nodiscard]] Cost cost_of(const System& system) const {
        Cost cost;
        const Rates rates(network_, system, memories_of(cluster_, system.aggregates));
        const std::vector<JobOutcome> found = outcomes(system);
        for (std::size_t job = 0; job < found.size(); ++job) {
            cost.iterations.push_back(found[job].iteration);
            cost.slowness += std::log(static_cast<double>(found[job].iteration.count()));
            const std::vector<double> loads = rates.traffic(job).loads;
            cost.bytes += std::accumulate(loads.begin(), loads.end(), 0.0) *
                          static_cast<double>(cluster_.jobs[job].workload.elements());
        }
        return cost;
    }

    using Set = std::vector<bool>;

    // The sets of switches to try next: each single switch, the leaves of each job, and all leaves. Some switches gain
    // only together.
    [[nodiscard]] std::set<Set> steps_from(const Set& bought) const {
        std::set<Set> steps;
        const auto add = [&](auto&& requested) {
            Set step(switches());
            for (std::size_t at = 0; at < switches(); ++at) {
                step[at] = everything().aggregates[at] && !bought[at] && requested(at);
            }
            if (step != Set(switches())) steps.insert(std::move(step));
        };
        const auto is_leaf = [&](std::size_t at) { return at != cluster_.root; };
        for (std::size_t one = 0; one < switches(); ++one) add([&](std::size_t at) { return at == one; });
        for (const Job& job : cluster_.jobs) {
            add([&](std::size_t at) { return is_leaf(at) && cluster_.serves(at, job); });
        }
        add(is_leaf);
        return steps;
    }

    struct Step {
        Set set;
        double gain = 0;    // decrease of Cost::slowness, per switch of the set
        double relief = 0;  // bytes removed from the links, per switch
        Cost cost;

        // If the gains are equal, the step that removes more traffic is better.
        [[nodiscard]] bool better_than(const Step& other) const {
            constexpr double same = 1e-3;
            if (std::abs(gain - other.gain) > same) return gain > other.gain;
            return relief > other.relief;
        }
    };

    [[nodiscard]] Step take(const Set& set, const Set& bought, const Cost& before) const {
        System more{.kind = Kind::atp, .aggregates = bought};
        for (std::size_t at = 0; at < switches(); ++at) {
            if (set[at]) more.aggregates[at] = true;
        }
        Step step{.set = set, .cost = cost_of(more)};
        const auto count = static_cast<double>(std::ranges::count(set, true));
        step.gain = (before.slowness - step.cost.slowness) / count;
        step.relief = (before.bytes - step.cost.bytes) / count;
        return step;
    }

    void choose_purchases() {
        Set bought(switches());
        Cost now = cost_of({.kind = Kind::atp, .aggregates = bought});
        while (bought != everything().aggregates) {
            std::optional<Step> best;
            for (const Set& set : steps_from(bought)) {
                Step step = take(set, bought, now);
                if (!best || step.better_than(*best)) best = std::move(step);
            }
            Purchase purchase{.switches = {}, .iterations = best->cost.iterations};
            for (std::size_t at = 0; at < switches(); ++at) {
                if (!best->set[at]) continue;
                bought[at] = true;
                purchase.switches.push_back(at);
            }
            now = std::move(best->cost);
            plan_.purchases.push_back(std::move(purchase));
        }
    }

    void try_shortages() {
        for (const double share : {1.0, 0.5, 0.25, 0.1}) {
            Memories memories;
            for (const SwitchPlan& one : plan_.switches) memories.push_back(share * one.requested_at_most);
            Shortage shortage{.share = share, .iterations = {}};
            for (const JobOutcome& outcome : evaluate(network_, everything(), memories)) {
                shortage.iterations.push_back(outcome.iteration);
            }
            plan_.shortages.push_back(std::move(shortage));
        }
    }

    const Cluster& cluster_;
    Network network_;
    Plan plan_;
};

}  // namespace

std::string_view to_string(Bottleneck::Kind kind) {
    switch (kind) {
        case Bottleneck::Kind::computation: return "computation";
        case Bottleneck::Kind::worker_link: return "worker_link";
        case Bottleneck::Kind::uplink: return "uplink";
        case Bottleneck::Kind::server_link: return "server_link";
        case Bottleneck::Kind::card: return "card";
        case Bottleneck::Kind::window: return "window";
        case Bottleneck::Kind::memory: return "memory";
    }
    return "unknown";
}

Plan make_plan(const Cluster& cluster) { return Planner(cluster).make(); }

}  // namespace atp::plan
