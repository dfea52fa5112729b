// SPDX-License-Identifier: Apache-2.0
// SwitchML as a system of the simulator: the shipped machines, compared with the paper and with plain arithmetic.
#include <gtest/gtest.h>

#include "support.h"

namespace atp::sim {
namespace {

using SwitchEvent = switchml::Event;
using switchml::Mode;

constexpr System switchml{.kind = System::Kind::switchml};

Scenario scenario(std::string_view shape = "star:4") {
    Scenario s;
    s.topology = topology(shape);
    s.systems = {switchml};
    s.bytes = 400'000;
    s.tensors = 3;
    return s;
}

const SwitchmlReport& switchml_of(const Report& report, unsigned job = 0) {
    EXPECT_TRUE(report.jobs.at(job).switchml.has_value());
    return *report.jobs[job].switchml;
}

std::uint64_t bytes_between(const Report& report, std::string_view from, std::string_view to) {
    std::uint64_t bytes = 0;
    for (const LinkReport& link : report.links) bytes += link.from == from && link.to == to ? link.counters.bytes : 0;
    return bytes;
}

// --- sums

TEST(Switchml, EveryModeAndPacketShapeSumsExactly) {
    for (const Mode mode : {Mode::lossless, Mode::faithful, Mode::compares_offsets}) {
        for (const std::uint16_t lanes : std::array<std::uint16_t, 3>{1, 32, 366}) {
            for (const bool halves : {false, true}) {
                Scenario s = scenario();
                s.switchml = {.lanes = lanes, .halves = halves, .mode = mode};
                s.iterations = 2;
                s.bytes = 40'000;
                const Report report = run_verified(s);
                EXPECT_EQ(report.jobs[0].resends(), 0U);
                EXPECT_DOUBLE_EQ(report.jobs[0].share_aggregated(), 1.0);
            }
        }
    }
}

TEST(Switchml, LinkCarriesEachPacketOncePerDirection) {
    const Scenario s = scenario("star:8");
    const Report report = run_verified(s);
    // 180 bytes with the headers that the paper counts, and 24 of checksum, preamble and gap.
    const std::uint64_t wire_bytes = 180 + 4 + 8 + 12;
    const std::uint64_t packets = switchml_of(report).workers.sent / 8;
    EXPECT_EQ(packets, 3U * 1042);  // of 33,333 or 33,334 elements each
    EXPECT_EQ(bytes_between(report, "h3", "s0"), packets * wire_bytes);
    EXPECT_EQ(bytes_between(report, "s0", "h3"), packets * wire_bytes);
    EXPECT_EQ(bytes_between(report, "s0", "p0"), 0U);
}

TEST(Switchml, HalvesTakeHalfTheBytes) {
    Scenario s = scenario();
    const std::uint64_t whole = bytes_between(run_verified(s), "h0", "s0");
    s.switchml.halves = true;
    s.switchml.lanes = 64;
    const std::uint64_t twice_the_elements = bytes_between(run_verified(s), "h0", "s0");
    EXPECT_NEAR(static_cast<double>(twice_the_elements) / static_cast<double>(whole), 0.5, 0.001);
}

TEST(Switchml, JobsOfOneAnd32WorkersSumExactly) {
    run_verified(scenario("star:1"));
    Scenario s = scenario("star:32");
    s.switchml.halves = true;
    run_verified(s);
}

TEST(Switchml, NumbersOutsideTheScaleEndTheirTensorForEveryWorker) {
    Scenario s = scenario();
    s.tensors = 100;
    s.float_share = 0.001;
    s.overflow_share = 0.001;
    EXPECT_GT(switchml_of(run_verified(s)).workers.overflowed, 0U);
    s.float_share = s.overflow_share = 0;
    s.gradients = LogNormal{.median = 1, .spread = 2};
    EXPECT_GT(switchml_of(run_verified(s)).workers.overflowed, 0U);
}

TEST(Switchml, PlainTensorsAndWrappingOffsetsSumExactly) {
    Scenario s = scenario();
    s.plain_share = 0.5;
    s.first_seq = 0xffffff00U;
    run_verified(s);
}

TEST(Switchml, ModelTrains) {
    Scenario s = scenario();
    s.models = {"ResNet50"};
    s.scale = 2000;
    s.iterations = 3;
    EXPECT_GT(run_verified(s).jobs[0].samples_per_s, 0.0);
}

// --- speed

double goodput_with_pool(std::uint32_t pool) {
    Scenario s = scenario();
    s.tensors = 1;
    s.switchml.pool = pool;
    return run_verified(s).jobs[0].goodput_bits_per_s();
}

TEST(Switchml, PoolOfTheBandwidthDelayProductFillsTheLink) {
    const double bound = 100e9 * 128 / 204;
    const double full = goodput_with_pool(512);
    EXPECT_GT(full, 0.9 * bound);
    EXPECT_LE(full, bound);
    // With few packets in flight the round trip limits the rate, and twice as many packets are twice as fast.
    EXPECT_NEAR(goodput_with_pool(32) / goodput_with_pool(16), 2.0, 0.1);
}

TEST(Switchml, LargerPoolOnlyLengthensTheRoundTrip) {
    Scenario s = scenario();
    s.bytes = 2'000'000;
    const Report fitting = run_verified(s);
    s.switchml.pool = 4 * 512;
    const Report larger = run_verified(s);
    EXPECT_NEAR(milliseconds_of(larger.jobs[0]) / milliseconds_of(fitting.jobs[0]), 1.0, 0.05);
    EXPECT_GT(switchml_of(larger).round_trip, 2 * switchml_of(fitting).round_trip);
}

TEST(Switchml, DefaultPoolFollowsTheRateAsInThePaper) {
    Scenario s = scenario();
    EXPECT_EQ(switchml_of(run_verified(s)).slots, 512U);
    s.rate_bits_per_s = 10'000'000'000;
    EXPECT_EQ(switchml_of(run_verified(s)).slots, 128U);
}

// --- faults

TEST(Switchml, LossDuplicatesAndReorderingOnlyDelaySums) {
    Scenario s = scenario();
    s.faults.loss = 0.01;
    s.faults.duplicate = 0.01;
    s.faults.reorder = 0.05;
    const Report report = run_verified(s);
    const SwitchmlReport& own = switchml_of(report);
    EXPECT_GT(own.workers.resent, 0U);
    EXPECT_GT(own.count(SwitchEvent::answered), 0U);
    EXPECT_GT(own.count(SwitchEvent::duplicate), 0U);
    EXPECT_EQ(own.workers.sent, own.workers.results);
}

TEST(Switchml, LossAtOneWorkerIsRecovered) {
    Scenario s = scenario();
    s.faults.loss = 0.01;
    s.faults.lossy_worker = 2;
    const Report report = run_verified(s);
    EXPECT_GT(report.jobs[0].resends(), 0U);
    for (const LinkReport& link : report.links) {
        const bool lossy = link.from == "h2" || link.to == "h2";
        EXPECT_EQ(link.counters.lost > 0, lossy) << link.from << ">" << link.to;
    }
}

TEST(Switchml, StragglerAndPauseDelayTheJob) {
    Scenario s = scenario();
    s.bytes = 100'000;
    const double alone = milliseconds_of(run_verified(s).jobs[0]);
    s.straggler = 1;
    s.straggler_factor = 100;
    s.faults.outages = {{.kind = Outage::Kind::pause,
                         .node = Outage::Node::worker,
                         .index = 2,
                         .at = Time(Duration(3'000)),
                         .lasts = std::chrono::milliseconds(2)}};
    EXPECT_GT(milliseconds_of(run_verified(s).jobs[0]), 20 * alone);
}

// H37, docs/spec/hazards.md#h37: the bit of a packet that is late by one phase equals the bit of the next phase.
TEST(Switchml, H37_LateDuplicatesBreakEveryModeButComparedOffsets) {
    Scenario s = scenario();
    s.bytes = 40'000;
    s.switchml.pool = 8;
    s.faults.duplicate = 0.05;
    s.faults.reorder = 0.05;
    s.faults.reorder_delay = std::chrono::microseconds(100);
    run_verified(s);
    s.switchml.mode = Mode::faithful;
    s.time_limit = Time(std::chrono::seconds(1));
    const Report faithful = run(s);
    EXPECT_FALSE(faithful.passed());
    EXPECT_NE(failures_of(faithful).find("wrong sum"), std::string::npos) << failures_of(faithful);
}

TEST(Switchml, PassedDeadlineFailsTheJobWithATimeout) {
    Scenario s = scenario();
    s.deadline = std::chrono::milliseconds(5);
    s.faults.loss = 1;
    const Report report = run(s);
    EXPECT_FALSE(report.complete);
    EXPECT_EQ(report.jobs[0].timed_out, 12U);
    ASSERT_FALSE(report.jobs[0].errors.empty());
    EXPECT_NE(report.jobs[0].errors[0].find("timed out after 5.000 ms"), std::string::npos);
}

// --- jobs

TEST(Switchml, JobsHaveEqualPartsOfThePool) {
    Scenario s = scenario();
    s.jobs = 3;
    s.switchml.pool = 512;
    s.faults.loss = 0.001;
    const Report report = run_verified(s);
    for (unsigned job = 0; job < 3; ++job) EXPECT_EQ(switchml_of(report, job).slots, 128U);
}

TEST(Switchml, JobsOfEveryOtherSystemShareTheNetwork) {
    Scenario s = scenario();
    s.server = ServerPlacement::dedicated;
    s.jobs = 4;
    s.systems = {switchml, System{}, {.kind = System::Kind::ring}, {.kind = System::Kind::ps}};
    s.faults.loss = 0.001;
    const Report report = run_verified(s);
    EXPECT_GT(switchml_of(report).workers.results, 0U);
    EXPECT_GT(report.jobs[1].server.completed, 0U);
    EXPECT_FALSE(report.jobs[1].switchml.has_value());
}

TEST(Switchml, JobsOfDifferentSizesOnSeparateHostsSumExactly) {
    Scenario s = scenario();
    s.jobs = 2;
    s.job_workers = {4, 3};
    s.placement = Placement::separate;
    run_verified(s);
}

TEST(Switchml, SameSeedGivesTheSameReport) {
    Scenario s = scenario();
    s.jobs = 2;
    s.systems = {switchml, System{}};
    s.faults.loss = 0.01;
    s.faults.reorder = 0.01;
    EXPECT_EQ(to_json(run_verified(s)), to_json(run_verified(s)));
}

TEST(Switchml, SeriesCountsEveryCompletedSum) {
    Scenario s = scenario();
    s.sample = std::chrono::microseconds(10);
    const Report report = run_verified(s);
    std::uint64_t added = 0;
    for (const std::uint64_t in_interval : report.series->job_added_in_network[0]) added += in_interval;
    EXPECT_EQ(added, 3 * switchml_of(report).count(SwitchEvent::completed));
}

// --- unsupported settings

TEST(Switchml, UnsupportedSettingIsRefusedWithTheReason) {
    const auto expect_problem = [](const auto& spoil, std::string_view words) {
        Scenario s = scenario();
        spoil(s);
        EXPECT_NE(problem_of(s).value_or("").find(words), std::string::npos) << problem_of(s).value_or("no problem");
    };
    expect_problem([](Scenario& s) { s.topology = topology("racks:2x2"); }, "one switch");
    expect_problem([](Scenario& s) { s.aggregation = Aggregation::nowhere; }, "only the switch adds");
    expect_problem([](Scenario& s) { s.faults.outages = {Outage{}}; }, "cannot recover lost sums");
    expect_problem([](Scenario& s) { s.faults.outages = {{.node = Outage::Node::worker}}; }, "does not use ATP");
    expect_problem([](Scenario& s) { s.priority = true; }, "one order");
    expect_problem([](Scenario& s) { s.switchml.lanes = 0; }, "--switchml-lanes 0");
    expect_problem([](Scenario& s) { s.switchml.timeout = Duration(0); }, "timeout");
    expect_problem(
        [](Scenario& s) {
            s.jobs = 3;
            s.switchml.pool = 2;
        },
        "too small for 3");
    expect_problem([](Scenario& s) { s.switchml.pool = 1U << 17U; }, "at most 65536 slots");
    expect_problem([](Scenario& s) { s.jobs = 257; }, "257 jobs of SwitchML");
    expect_problem([](Scenario& s) { s.queue_bytes = 1'000, s.lanes = 8, s.switchml.lanes = 366; }, "holds no packet");
    expect_problem([](Scenario& s) { s.faults.loss = 0.01, s.switchml.mode = Mode::lossless; }, "lossless");
    expect_problem([](Scenario& s) { s.plain_share = 0.5, s.switchml.halves = true; }, "float16");
}

}  // namespace
}  // namespace atp::sim
