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

std::optional<std::string> problem_of_topology(const Scenario& s) {
    const TopologySpec& t = s.topology;
    for (const unsigned workers : s.job_workers) {
        if (workers >= 1 && workers <= s.workers()) continue;
        return fmt::format("{} workers do not fit the topology {}; use 1 to {}", workers, to_string(t), s.workers());
    }
    for (unsigned job = 0; job < s.jobs; ++job) {
        if (!units_of(s, job)) {
            return fmt::format(
                "the topology {} gives a job more than {} units: with --server colocated each worker beside the server "
                "counts as one unit",
                to_string(t), bits_max);
        }
    }
    return std::nullopt;
}

std::optional<std::string> problem_of_switchml_pool(const Scenario& s, unsigned job) {
    const unsigned jobs = s.switchml_jobs(s.jobs);
    if (jobs > switchml_jobs_max) {
        return fmt::format("{} jobs of SwitchML; use at most {}", jobs, switchml_jobs_max);
    }
    if (s.switchml.pool != 0 && s.switchml.pool < jobs) {
        return fmt::format("a pool of {} slots is too small for {} jobs of SwitchML: use a larger --pool",
                           s.switchml.pool, jobs);
    }
    const switchml::JobConfig config = s.switchml_config(job);
    if (!config.valid()) {
        return fmt::format("{} slots of {} lanes for a job of SwitchML; use at most {} slots and packets of {} bytes",
                           config.slots(), config.lanes, 1U << switchml::JobConfig::max_slots_log2,
                           switchml::header_bytes + switchml::max_lane_bytes);
    }
    if (s.queue_bytes < config.packet_bytes() + s.overhead_bytes) {
        return fmt::format("a queue of {} bytes holds no packet of SwitchML, which has {} bytes: use a larger --queue",
                           s.queue_bytes, config.packet_bytes() + s.overhead_bytes);
    }
    if (s.bytes / sizeof(float) / s.switchml.lanes >= switchml_fragments_max) {
        return fmt::format("{} bytes are more packets of SwitchML than may wait at once: use less --bytes", s.bytes);
    }
    return std::nullopt;
}

// Settings that SwitchML does not support.
std::optional<std::string> problem_of_switchml(const Scenario& s, unsigned job) {
    if (count_switches(s.topology) != 1) {
        return fmt::format("job {} uses SwitchML, which has one switch: use a topology with one switch, such as star:N",
                           job);
    }
    if (s.aggregation == Aggregation::nowhere) {
        return fmt::format("job {} uses SwitchML, in which only the switch adds: remove --aggregation nowhere", job);
    }
    for (const Outage& outage : s.faults.outages) {
        if (outage.kind == Outage::Kind::crash && outage.node == Outage::Node::fabric_switch) {
            return fmt::format(
                "a switch crashes, and job {} uses SwitchML, which cannot recover lost sums: remove the crash", job);
        }
    }
    const bool harmful = s.faults.loss > 0 || s.faults.duplicate > 0 || s.faults.replay > 0;
    if (s.switchml.mode == switchml::Mode::lossless && harmful) {
        return "SwitchML mode lossless needs links without loss and duplicates: use --switchml-mode offsets, or remove "
               "these faults";
    }
    if (s.switchml.halves && (s.plain_share > 0 || s.gradients)) {
        return "float16 lanes of SwitchML hold 11 bits: remove --switchml-halves, or --plain-share and --gradients";
    }
    return problem_of_switchml_pool(s, job);
}

std::optional<std::string> problem_of_systems(const Scenario& s) {
    if (s.partition && s.aggregators < s.jobs) {
        return fmt::format("{} aggregators are too few for {} jobs: use more --aggregators", s.aggregators, s.jobs);
    }
    if (s.bucket_bytes < sizeof(float))
        return fmt::format("buckets of {} bytes hold no gradient: use 4 bytes or more", s.bucket_bytes);
    for (const BackgroundSpec& flow : s.background) {
        if (flow.rank >= s.workers_of(0))
            return fmt::format("background flow at worker {}; use a number below {}", flow.rank, s.workers_of(0));
    }
    for (unsigned job = 0; job < s.jobs; ++job) {
        const System system = s.system_of(job);
        if (system.kind == System::Kind::ps && s.server == ServerPlacement::on_switch) {
            return "the system ps needs a host for its server: use --server dedicated or colocated";
        }
        const bool is_switchml = system.kind == System::Kind::switchml;
        if ((system.kind == System::Kind::atp || is_switchml) && s.priority) {
            return fmt::format("--priority excludes {}, whose workers must send all tensors in one order",
                               is_switchml ? "SwitchML" : "ATP");
        }
        const bool leaves = std::ranges::any_of(s.faults.outages, [job](const Outage& outage) {
            return outage.kind == Outage::Kind::silence || (outage.kind == Outage::Kind::leave && outage.job == job);
        });
        if (system.kind != System::Kind::atp && (s.ends_incarnations() || leaves)) {
            return fmt::format(
                "a worker or server crashes, and job {} does not use ATP: only ATP recovers from such a crash", job);
        }
        if (!is_switchml) continue;
        if (auto problem = problem_of_switchml(s, job)) return problem;
    }
    return std::nullopt;
}

std::optional<std::string> problem_of_outages(const Scenario& s) {
    for (const Outage& outage : s.faults.outages) {
        const bool is_switch = outage.node == Outage::Node::fabric_switch;
        if (is_switch && outage.index >= count_switches(s.topology)) {
            return fmt::format("switch {} is out of range; the topology has {}", outage.index,
                               count_switches(s.topology));
        }
        using Kind = Outage::Kind;
        const bool fits = outage.kind == Kind::silence || outage.kind == Kind::leave
                              ? outage.node == Outage::Node::worker
                              : outage.kind != Kind::kill || is_switch;
        const bool is_cut = outage.kind >= Kind::cut;
        if (!fits) return fmt::format("the outage {} is not one of this kind of node", to_string(outage));
        if (is_cut && is_switch && outage.index + 1 == count_switches(s.topology)) {
            return fmt::format("the outage {} cuts the last switch, which has no link to another: use another switch",
                               to_string(outage));
        }
        if (!is_switch && outage.job >= s.jobs)
            return fmt::format("job {} is out of range; there are {} jobs", outage.job, s.jobs);
        if (outage.node == Outage::Node::worker && outage.index >= s.workers_of(outage.job)) {
            return fmt::format("worker {} is out of range; there are {} workers", outage.index,
                               s.workers_of(outage.job));
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> problem_of(const Scenario& s) {
    if (auto problem = problem_of_values(s)) return problem;
    if (auto problem = problem_of_topology(s)) return problem;
    if (s.bytes < std::uint64_t{sizeof(float)} * s.tensors * s.channels) {
        return fmt::format("{} bytes cannot be divided into {} tensors on {} channels: use more --bytes", s.bytes,
                           s.tensors, s.channels);
    }
    if (s.lanes < (s.audit ? 2 : 1) || s.lanes > ATP_MAX_LANES) {
        return fmt::format("{} lanes; use {} to {}", s.lanes, s.audit ? 2 : 1, ATP_MAX_LANES);
    }
    const std::uint64_t packet_bytes = ATP_HEADER_BYTES + std::uint64_t{s.lanes} * ATP_LANE_BYTES + s.overhead_bytes;
    if (s.queue_bytes < packet_bytes) {
        return fmt::format("a queue of {} bytes holds no packet of {} bytes: use a larger --queue", s.queue_bytes,
                           packet_bytes);
    }
    if (s.min_timeout <= Duration::zero() || s.min_timeout > s.max_timeout) {
        return fmt::format("timeouts from {} ns to {} ns: --min-timeout must be above 0 and at most --max-timeout",
                           s.min_timeout.count(), s.max_timeout.count());
    }
    if (s.bytes / sizeof(float) / s.tensors / s.channels / s.payload_lanes() >= sequence_numbers) {
        return fmt::format(
            "{} bytes are more fragments of one tensor than there are sequence numbers: use less --bytes", s.bytes);
    }
    if (s.faults.lossy_worker && *s.faults.lossy_worker >= s.workers()) {
        return fmt::format("--lossy-worker {} is out of range; there are {} workers", *s.faults.lossy_worker,
                           s.workers());
    }
    if (s.straggler && *s.straggler >= s.workers()) {
        return fmt::format("--straggler {} is out of range; there are {} workers", *s.straggler, s.workers());
    }
    if (s.in_path && (s.server == ServerPlacement::colocated || s.aggregation != Aggregation::everywhere)) {
        return "--in-path needs a server that is not on a worker's host, and switches that all aggregate: remove "
               "--server colocated and --aggregation";
    }
    if (s.has_numbers() && (s.overflow_share > 0 || s.plain_share > 0 || s.owned_share > 0 || s.gradients)) {
        return "--scaling dynamic and narrow --lane-type have numbers of their own: remove --overflow-share, "
               "--plain-share, --owned-share and --gradients";
    }
    if (s.ranks_of_host > 1 && (!s.may_share_memory() || s.workers() * s.ranks_of_host > ranks_max)) {
        return fmt::format("{} ranks on each host: remove --owned-share and --overflow-share, and use at most {} ranks",
                           s.ranks_of_host, ranks_max);
    }
    if (s.int32_switch && *s.int32_switch >= count_switches(s.topology)) {
        return fmt::format("--int32-switch {} is out of range; the topology has {} switches", *s.int32_switch,
                           count_switches(s.topology));
    }
    if (auto problem = problem_of_systems(s)) return problem;
    return problem_of_outages(s);
}

}  // namespace atp::sim
