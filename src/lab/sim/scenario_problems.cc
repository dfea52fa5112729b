// SPDX-License-Identifier: Apache-2.0
// What is wrong with a scenario, in words for its user.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "sim/fabric.h"
#include "sim/scenario.h"
#include "sim/scenario_table.h"
#include "sim/scenario_text.h"

namespace atp::sim {
namespace {

constexpr unsigned bits_max = ATP_BITMAP_BITS;
constexpr unsigned ranks_max = 1024;
constexpr std::uint64_t sequence_numbers = std::uint64_t{1} << 32U;
constexpr unsigned switchml_jobs_max = 256;
constexpr std::uint64_t switchml_fragments_max = std::uint64_t{1} << 30U;

std::optional<std::string> problem_of_topology(const Scenario& scenario) {
    const TopologySpec& t = scenario.topology;
    for (const unsigned workers : scenario.job_workers) {
        if (workers >= 1 && workers <= scenario.workers()) continue;
        return fmt::format("{} workers do not fit the topology {}; use 1 to {}", workers, to_string(t),
                           scenario.workers());
    }
    for (unsigned job = 0; job < scenario.jobs; ++job) {
        if (!units_of(scenario, job)) {
            return fmt::format(
                "the topology {} gives a job more than {} units: with --server colocated each worker beside the server "
                "counts as one unit",
                to_string(t), bits_max);
        }
    }
    return std::nullopt;
}

std::optional<std::string> problem_of_switchml_pool(const Scenario& scenario, unsigned job) {
    const unsigned jobs = scenario.switchml_jobs(scenario.jobs);
    if (jobs > switchml_jobs_max) {
        return fmt::format("{} jobs of SwitchML; use at most {}", jobs, switchml_jobs_max);
    }
    if (scenario.switchml.pool != 0 && scenario.switchml.pool < jobs) {
        return fmt::format("a pool of {} slots is too small for {} jobs of SwitchML: use a larger --pool",
                           scenario.switchml.pool, jobs);
    }
    const switchml::JobConfig config = scenario.switchml_config(job);
    if (!config.valid()) {
        return fmt::format("{} slots of {} lanes for a job of SwitchML; use at most {} slots and packets of {} bytes",
                           config.slots(), config.lanes, 1U << switchml::JobConfig::max_slots_log2,
                           switchml::header_bytes + switchml::max_lane_bytes);
    }
    if (scenario.queue_bytes < config.packet_bytes() + scenario.overhead_bytes) {
        return fmt::format("a queue of {} bytes holds no packet of SwitchML, which has {} bytes: use a larger --queue",
                           scenario.queue_bytes, config.packet_bytes() + scenario.overhead_bytes);
    }
    if (scenario.bytes / sizeof(float) / scenario.switchml.lanes >= switchml_fragments_max) {
        return fmt::format("{} bytes are more packets of SwitchML than may wait at once: use less --bytes",
                           scenario.bytes);
    }
    return std::nullopt;
}

// Settings that SwitchML does not support.
std::optional<std::string> problem_of_switchml(const Scenario& scenario, unsigned job) {
    if (count_switches(scenario.topology) != 1) {
        return fmt::format("job {} uses SwitchML, which has one switch: use a topology with one switch, such as star:N",
                           job);
    }
    if (scenario.aggregation == Aggregation::nowhere) {
        return fmt::format("job {} uses SwitchML, in which only the switch adds: remove --aggregation nowhere", job);
    }
    for (const Outage& outage : scenario.faults.outages) {
        if (outage.kind == Outage::Kind::crash && outage.node == Outage::Node::fabric_switch) {
            return fmt::format(
                "a switch crashes, and job {} uses SwitchML, which cannot recover lost sums: remove the crash", job);
        }
    }
    const bool harmful = scenario.faults.loss > 0 || scenario.faults.duplicate > 0 || scenario.faults.replay > 0;
    if (scenario.switchml.mode == switchml::Mode::lossless && harmful) {
        return "SwitchML mode lossless needs links without loss and duplicates: use --switchml-mode offsets, or remove "
               "these faults";
    }
    if (scenario.switchml.halves && (scenario.plain_share > 0 || scenario.gradients)) {
        return "float16 lanes of SwitchML hold 11 bits: remove --switchml-halves, or --plain-share and --gradients";
    }
    return problem_of_switchml_pool(scenario, job);
}

std::optional<std::string> problem_of_systems(const Scenario& scenario) {
    if (scenario.partition && scenario.aggregators < scenario.jobs) {
        return fmt::format("{} aggregators are too few for {} jobs: use more --aggregators", scenario.aggregators,
                           scenario.jobs);
    }
    if (scenario.bucket_bytes < sizeof(float)) {
        return fmt::format("buckets of {} bytes hold no gradient: use 4 bytes or more", scenario.bucket_bytes);
    }
    for (const BackgroundSpec& flow : scenario.background) {
        if (flow.rank >= scenario.workers_of(0)) {
            return fmt::format("background flow at worker {}; use a number below {}", flow.rank,
                               scenario.workers_of(0));
        }
    }
    for (unsigned job = 0; job < scenario.jobs; ++job) {
        const System system = scenario.system_of(job);
        if (system.kind == System::Kind::ps && scenario.server == ServerPlacement::on_switch) {
            return "the system ps needs a host for its server: use --server dedicated or colocated";
        }
        const bool is_switchml = system.kind == System::Kind::switchml;
        if ((system.kind == System::Kind::atp || is_switchml) && scenario.priority) {
            return fmt::format("--priority excludes {}, whose workers must send all tensors in one order",
                               is_switchml ? "SwitchML" : "ATP");
        }
        const bool leaves = std::ranges::any_of(scenario.faults.outages, [job](const Outage& outage) {
            return outage.kind == Outage::Kind::silence || (outage.kind == Outage::Kind::leave && outage.job == job);
        });
        if (system.kind != System::Kind::atp && (scenario.ends_incarnations() || leaves)) {
            return fmt::format(
                "a worker or server crashes, and job {} does not use ATP: only ATP recovers from such a crash", job);
        }
        if (!is_switchml) continue;
        if (auto problem = problem_of_switchml(scenario, job)) return problem;
    }
    return std::nullopt;
}

std::optional<std::string> problem_of_outages(const Scenario& scenario) {
    for (const Outage& outage : scenario.faults.outages) {
        const bool is_switch = outage.node == Outage::Node::fabric_switch;
        if (is_switch && outage.index >= count_switches(scenario.topology)) {
            return fmt::format("switch {} is out of range; the topology has {}", outage.index,
                               count_switches(scenario.topology));
        }
        using Kind = Outage::Kind;
        const bool fits = outage.kind == Kind::silence || outage.kind == Kind::leave
                              ? outage.node == Outage::Node::worker
                              : outage.kind != Kind::kill || is_switch;
        const bool is_cut = outage.kind >= Kind::cut;
        if (!fits) return fmt::format("the outage {} is not one of this kind of node", to_string(outage));
        if (is_cut && is_switch && outage.index + 1 == count_switches(scenario.topology)) {
            return fmt::format("the outage {} cuts the last switch, which has no link to another: use another switch",
                               to_string(outage));
        }
        if (!is_switch && outage.job >= scenario.jobs) {
            return fmt::format("job {} is out of range; there are {} jobs", outage.job, scenario.jobs);
        }
        if (outage.node == Outage::Node::worker && outage.index >= scenario.workers_of(outage.job)) {
            return fmt::format("worker {} is out of range; there are {} workers", outage.index,
                               scenario.workers_of(outage.job));
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> problem_of(const Scenario& scenario) {
    if (auto problem = problem_of_values(scenario)) return problem;
    if (auto problem = problem_of_topology(scenario)) return problem;
    if (scenario.bytes < std::uint64_t{sizeof(float)} * scenario.tensors * scenario.channels) {
        return fmt::format("{} bytes cannot be divided into {} tensors on {} channels: use more --bytes",
                           scenario.bytes, scenario.tensors, scenario.channels);
    }
    if (scenario.lanes < (scenario.audit ? 2 : 1) || scenario.lanes > ATP_MAX_LANES) {
        return fmt::format("{} lanes; use {} to {}", scenario.lanes, scenario.audit ? 2 : 1, ATP_MAX_LANES);
    }
    const std::uint64_t packet_bytes =
        ATP_HEADER_BYTES + std::uint64_t{scenario.lanes} * ATP_LANE_BYTES + scenario.overhead_bytes;
    if (scenario.queue_bytes < packet_bytes) {
        return fmt::format("a queue of {} bytes holds no packet of {} bytes: use a larger --queue",
                           scenario.queue_bytes, packet_bytes);
    }
    if (scenario.min_timeout <= Duration::zero() || scenario.min_timeout > scenario.max_timeout) {
        return fmt::format("timeouts from {} ns to {} ns: --min-timeout must be above 0 and at most --max-timeout",
                           scenario.min_timeout.count(), scenario.max_timeout.count());
    }
    if (scenario.bytes / sizeof(float) / scenario.tensors / scenario.channels / scenario.payload_lanes() >=
        sequence_numbers) {
        return fmt::format(
            "{} bytes are more fragments of one tensor than there are sequence numbers: use less --bytes",
            scenario.bytes);
    }
    if (scenario.faults.lossy_worker && *scenario.faults.lossy_worker >= scenario.workers()) {
        return fmt::format("--lossy-worker {} is out of range; there are {} workers", *scenario.faults.lossy_worker,
                           scenario.workers());
    }
    if (scenario.straggler && *scenario.straggler >= scenario.workers()) {
        return fmt::format("--straggler {} is out of range; there are {} workers", *scenario.straggler,
                           scenario.workers());
    }
    if (scenario.in_path &&
        (scenario.server == ServerPlacement::colocated || scenario.aggregation != Aggregation::everywhere)) {
        return "--in-path needs a server that is not on a worker's host, and switches that all aggregate: remove "
               "--server colocated and --aggregation";
    }
    if (scenario.has_numbers() &&
        (scenario.overflow_share > 0 || scenario.plain_share > 0 || scenario.owned_share > 0 || scenario.gradients)) {
        return "--scaling dynamic and narrow --lane-type have numbers of their own: remove --overflow-share, "
               "--plain-share, --owned-share and --gradients";
    }
    if (scenario.ranks_of_host > 1 &&
        (!scenario.may_share_memory() || scenario.workers() * scenario.ranks_of_host > ranks_max)) {
        return fmt::format("{} ranks on each host: remove --owned-share and --overflow-share, and use at most {} ranks",
                           scenario.ranks_of_host, ranks_max);
    }
    if (scenario.int32_switch && *scenario.int32_switch >= count_switches(scenario.topology)) {
        return fmt::format("--int32-switch {} is out of range; the topology has {} switches", *scenario.int32_switch,
                           count_switches(scenario.topology));
    }
    if (auto problem = problem_of_systems(scenario)) return problem;
    return problem_of_outages(scenario);
}

}  // namespace atp::sim
