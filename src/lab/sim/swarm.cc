// SPDX-License-Identifier: Apache-2.0
#include "sim/swarm.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.h"
#include "sim/simulation.h"

namespace atp::sim {
namespace {

constexpr std::uint64_t swarm_stream = 0x5a3b;

using std::chrono::microseconds;
using std::chrono::milliseconds;

Duration between(Random& random, Duration first, Duration last) {
    return first +
           Duration(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>((last - first).count()) + 1)));
}

unsigned between(Random& random, unsigned first, unsigned last) {
    return static_cast<unsigned>(random.between(first, last));
}

void draw_topology(Random& random, Scenario& s) {
    using Shape = TopologySpec::Shape;
    static constexpr std::array shapes{Shape::star,  Shape::star,     Shape::racks,
                                       Shape::racks, Shape::dumbbell, Shape::fig9};
    s.topology.shape = random.pick(shapes);
    const bool large = random.chance(0.04);
    switch (s.topology.shape) {
        case Shape::star: s.topology = {Shape::star, large ? 32 : between(random, 1, 8), 1}; break;
        case Shape::racks:
            s.topology = {Shape::racks, large ? 8 : between(random, 1, 4), between(random, 1, large ? 8 : 4)};
            break;
        case Shape::dumbbell: s.topology = {Shape::dumbbell, between(random, 1, 4), between(random, 1, 4)}; break;
        case Shape::fig9: s.topology = {Shape::fig9, 3, 2}; break;
    }
    static constexpr std::array servers{ServerPlace::on_switch, ServerPlace::on_switch, ServerPlace::dedicated,
                                        ServerPlace::colocated};
    s.server = random.pick(servers);
    if (random.chance(0.05)) s.aggregation = Aggregation::racks;
    if (random.chance(0.05)) s.aggregation = Aggregation::nowhere;
    if (random.chance(0.3)) s.placement = Placement::separate;
}

void draw_links(Random& random, Scenario& s) {
    static constexpr std::array<std::int64_t, 3> rates{1'000'000'000, 10'000'000'000, 100'000'000'000};
    s.rate_bits_per_s = random.pick(rates);
    s.delay = between(random, Duration(100), microseconds(20));
    s.queue_bytes = random.between(6'000, 400'000);
    s.ecn_bytes = random.chance(0.2) ? 0 : random.between(500, s.queue_bytes);
    if (random.chance(0.3)) s.paths = between(random, 2, 4);
    s.path_skew = between(random, Duration(0), microseconds(20));
}

void draw_jobs(Random& random, Scenario& s) {
    static constexpr std::array<std::uint16_t, 6> lanes{2, 3, 8, 16, 33, 62};
    static constexpr std::array<std::uint8_t, 9> windows{0, 1, 1, 2, 2, 3, 5, 6, 8};
    static constexpr std::array<std::uint32_t, 8> tables{1, 1, 2, 3, 8, 64, 256, 4096};
    s.audit = !random.chance(0.05);
    s.lanes = random.pick(lanes);
    s.window_log2 = random.pick(windows);
    s.aggregators = random.pick(tables);
    s.jobs = random.chance(0.5) ? 1 : between(random, 2, 3);
    s.channels = random.chance(0.8) ? 1 : 2;
    s.tensors = between(random, 1, 4);
    s.iterations = between(random, 1, 3);
    const std::uint64_t fragments = random.between(s.tensors, 200);
    s.bytes = std::max<std::uint64_t>(fragments * s.payload_lanes() * sizeof(float) / s.jobs / s.iterations,
                                      sizeof(float) * s.tensors * s.channels) +
              sizeof(float) * random.below(s.payload_lanes());
    if (random.chance(0.5)) s.pause = between(random, Duration(0), milliseconds(2));
    if (random.chance(0.5)) s.stagger = between(random, Duration(0), milliseconds(1));
    s.first_job = static_cast<std::uint32_t>(random.next() >> 34U);
    static constexpr std::array<std::uint32_t, 3> edges{0U, 0x80000000U, 0xffffffffU};
    s.first_seq =
        random.chance(0.8) ? random.pick(edges) - between(random, 0, 150) : static_cast<std::uint32_t>(random.next());
}

void draw_protocol(Random& random, Scenario& s) {
    static constexpr std::array<double, 5> shares{0, 0, 0.02, 0.2, 1.0};
    s.ageing = random.chance(0.5) ? between(random, microseconds(50), milliseconds(5))
                                  : between(random, milliseconds(5), milliseconds(500));
    s.initial_packets = random.chance(0.5) ? 200 : between(random, 1, 32);
    s.congestion_control = !random.chance(0.1);
    s.min_timeout = between(random, microseconds(100), milliseconds(1));
    s.max_timeout = between(random, milliseconds(2), milliseconds(200));
    s.float_share = random.pick(shares);
    s.overflow_share = (1 - s.float_share) * random.pick(shares);
}

void draw_outages(Random& random, Scenario& s) {
    const auto until = s.faults.until.time_since_epoch();
    const auto add = [&](Outage::Kind kind, Outage::Node node) {
        Outage outage{.kind = kind, .node = node};
        outage.job = between(random, 0, s.jobs - 1);
        if (node == Outage::Node::worker) outage.index = between(random, 0, s.workers() - 1);
        outage.at = Time(between(random, Duration(0), random.chance(0.7) ? until / 8 : until));
        outage.lasts = between(random, microseconds(1), until);
        s.faults.outages.push_back(outage);
    };
    const auto add_switch = [&](Outage::Kind kind) {
        add(kind, Outage::Node::fabric_switch);
        s.faults.outages.back().index = between(random, 0, count_switches(s.topology) - 1);
    };
    if (random.chance(0.2)) add_switch(Outage::Kind::crash);
    if (random.chance(0.1)) add_switch(Outage::Kind::pause);
    if (random.chance(0.15)) add(Outage::Kind::pause, Outage::Node::worker);
    if (random.chance(0.05)) add(Outage::Kind::pause, Outage::Node::server);
    if (random.chance(0.1)) add(Outage::Kind::crash, Outage::Node::worker);
    if (random.chance(0.1)) add(Outage::Kind::crash, Outage::Node::server);
    // In the order of the command line: crashes, then pauses.
    std::ranges::stable_sort(s.faults.outages, {}, &Outage::kind);
    if (!s.ends_incarnations() && !random.chance(0.05)) return;
    s.deadline = between(random, milliseconds(100), milliseconds(1000));
    if (!random.chance(0.3)) return;
    // Packets that outlive their incarnation (H27, docs/protocol.md#h27).
    s.faults.replay = 0.2;
    s.faults.reorder = 0.05;
    s.faults.reorder_delay = *s.deadline * 2;
}

void draw_faults(Random& random, Scenario& s) {
    static constexpr std::array<double, 7> rates{0, 0, 0.001, 0.01, 0.03, 0.1, 0.3};
    s.faults.loss = random.pick(rates);
    s.faults.duplicate = random.pick(rates);
    s.faults.reorder = random.pick(rates);
    s.faults.reorder_delay = random.chance(0.7) ? between(random, microseconds(1), microseconds(50))
                                                : between(random, microseconds(50), milliseconds(3));
    s.faults.until = Time(random.chance(0.7) ? between(random, milliseconds(1), milliseconds(10))
                                             : between(random, milliseconds(10), milliseconds(60)));
    draw_outages(random, s);
    if (random.chance(0.15) && s.rate_bits_per_s >= 10'000'000'000) {
        s.straggler = between(random, 0, s.workers() - 1);
        s.straggler_factor = between(random, 2, 100);
    }
}

// A SwitchML job needs a single switch, no crashes and no deadlines.
void draw_switchml(Random& random, Scenario& s) {
    const bool possible =
        s.topology.shape == TopologySpec::Shape::star && !s.deadline &&
        std::ranges::all_of(s.faults.outages, [](const Outage& outage) { return outage.kind == Outage::Kind::pause; });
    if (!possible || !random.chance(0.5)) return;
    static constexpr std::array<std::uint16_t, 6> lanes{1, 3, 8, 32, 64, 366};
    for (unsigned job = 0; job < s.jobs; ++job) {
        const bool atp = s.jobs > 1 && random.chance(0.3);
        s.systems.push_back({.kind = atp ? System::Kind::atp : System::Kind::switchml});
    }
    s.switchml.pool = s.jobs << between(random, 0, 8);
    s.switchml.lanes = random.pick(lanes);
    s.switchml.timeout = between(random, microseconds(200), milliseconds(2));
    s.switchml.halves = s.plain_share == 0 && random.chance(0.2);
    const bool harmless = s.faults.loss == 0 && s.faults.duplicate == 0;
    if (harmless && random.chance(0.5)) s.switchml.mode = switchml::Mode::lossless;
}

}  // namespace

Scenario draw_scenario(std::uint64_t seed) {
    // Some draws cannot run, for example with more units than a bitmap has bits. Then the next draw of the same seed is
    // used.
    for (std::uint64_t attempt = 0;; ++attempt) {
        Random random(seed, swarm_stream + attempt);
        Scenario s;
        s.seed = seed;
        draw_topology(random, s);
        draw_links(random, s);
        draw_jobs(random, s);
        draw_protocol(random, s);
        draw_faults(random, s);
        // Drawn last, so that the rest of a seed does not change with these settings.
        if (random.chance(0.3)) s.plain_share = random.chance(0.5) ? 1.0 : 0.5;
        draw_switchml(random, s);
        s.time_limit = s.faults.until + healed_phase;
        if (!problem_of(s)) return s;
    }
}

namespace {

void add_to_summary(const Report& report, SwarmSummary& summary) {
    ++summary.runs;
    if (!report.passed()) ++summary.failures;
    summary.packet_hops += report.packet_hops;
    for (const JobReport& job : report.jobs) {
        summary.fragments += job.fragments();
        summary.incarnations += job.incarnations;
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
    std::atomic<std::uint64_t> next = 0;
    const auto work = [&] {
        while (options.stop == nullptr || !options.stop->load(std::memory_order_relaxed)) {
            const std::uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
            if (mine >= options.runs) return;
            const Report report =
                run(draw_scenario(options.first_seed + mine), {.trace = nullptr, .stop = options.stop, .progress = {}});
            const std::lock_guard lock(mutex);
            if (report.interrupted) return;
            add_to_summary(report, summary);
            if (!report.passed() && options.failed) options.failed(report);
            if (options.progress) options.progress(summary.runs);
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < options.threads; ++i) threads.emplace_back(work);
    work();
    threads.clear();  // joins the threads
    return summary;
}

}  // namespace atp::sim
