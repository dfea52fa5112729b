// SPDX-License-Identifier: Apache-2.0
// The loop of a rank: when gradients become ready, and which sums the next forward pass waits for.
#include "workload/training.h"

#include <gtest/gtest.h>

#include "support.h"

namespace atp::sim {
namespace {

using std::chrono::microseconds;

Time at_us(int us) { return Time(microseconds(us)); }

// Two layers: the back layer's gradients are ready after 10 us, the front layer's after 30 us. The forward passes take
// 5 and 7 us.
workload::Workload two_layers() {
    return {.buckets = {{.elements = 100, .ready = microseconds(10)}, {.elements = 50, .ready = microseconds(30)}},
            .forward = {{.compute = microseconds(5), .first = 1, .last = 2},
                        {.compute = microseconds(7), .first = 0, .last = 1}}};
}

TEST(Training, BucketsAreDueAsTheBackwardPassRuns) {
    const workload::Workload workload = two_layers();
    workload::Training training(workload, 1, 1);
    training.begin(0, 0, at_us(100));
    EXPECT_EQ(training.due(0), at_us(110));
    EXPECT_EQ(training.advance(0, at_us(109)).last, 0U);
    const auto first = training.advance(0, at_us(110));
    EXPECT_EQ(first.first, 0U);
    EXPECT_EQ(first.last, 1U);
    EXPECT_EQ(training.due(0), at_us(130));
    const auto second = training.advance(0, at_us(130));
    EXPECT_EQ(second.first, 1U);
    EXPECT_EQ(second.last, 2U);
    EXPECT_EQ(training.due(0), never);
}

TEST(Training, LayerIsComputedWhenItsSumsArrivedThoughLaterOnesLack) {
    const workload::Workload workload = two_layers();
    workload::Training training(workload, 1, 2);
    training.begin(0, 0, at_us(0));
    (void)training.advance(0, at_us(10));
    (void)training.advance(0, at_us(30));
    training.summed(0, 1, at_us(40));  // the front layer's
    EXPECT_EQ(training.due(0), at_us(45));
    EXPECT_EQ(training.advance(0, at_us(45)).last, 0U);
    EXPECT_EQ(training.due(0), never);  // the next layer's sum is missing
    EXPECT_EQ(training.iterations_done(0), 0U);
    training.summed(0, 0, at_us(60));
    EXPECT_EQ(training.iterations_done(0), 1U);
    EXPECT_EQ(training.due(0), at_us(67));
    EXPECT_EQ(training.advance(0, at_us(67)).last, 0U);
    EXPECT_EQ(training.due(0), at_us(77));  // the next backward pass: its first bucket
}

TEST(Training, LastIterationEndsWithItsSums) {
    const workload::Workload workload = two_layers();
    workload::Training training(workload, 1, 1);
    training.begin(0, 0, at_us(0));
    (void)training.advance(0, at_us(10));
    (void)training.advance(0, at_us(30));
    training.summed(0, 0, at_us(31));
    EXPECT_FALSE(training.all_finished());
    training.summed(0, 1, at_us(32));
    EXPECT_TRUE(training.all_finished());
    EXPECT_EQ(training.due(0), never);
    EXPECT_EQ(training.last_end(), at_us(32));
}

Scenario training_of(System::Kind kind) {
    Scenario s;
    s.topology = topology("star:4");
    s.server = ServerPlacement::dedicated;
    s.systems = {{.kind = kind}};
    s.models = {"ResNet50"};
    s.scale = 2000;
    s.iterations = 4;
    return s;
}

class TrainingBy : public testing::TestWithParam<System::Kind> {};

// If the network has no limits, an iteration takes as long as its computation.
TEST_P(TrainingBy, InfinitelyFastNetworkTakesTheComputationTime) {
    Scenario s = training_of(GetParam());
    s.rate_bits_per_s = 8'000'000'000'000;
    s.delay = Duration(1);
    s.initial_packets = 256;
    const Report report = run_verified(s);
    const double compute = to_milliseconds(s.workload(0).compute());
    EXPECT_NEAR(to_milliseconds(report.jobs[0].iteration_time), compute, compute * 0.03);
    EXPECT_NEAR(report.jobs[0].samples_per_s, workload::find_model("ResNet50")->samples_per_s, 8);
}

TEST_P(TrainingBy, SlowNetworkTakesAtLeastItsTransferTime) {
    Scenario s = training_of(GetParam());
    s.rate_bits_per_s = 1'000'000'000;
    const Report report = run_verified(s);
    const auto bits = static_cast<double>(s.workload(0).elements()) * 32;
    EXPECT_GT(to_milliseconds(report.jobs[0].iteration_time), bits / 1e9 * 1e3);
}

INSTANTIATE_TEST_SUITE_P(All, TrainingBy,
                         testing::Values(System::Kind::atp, System::Kind::ps, System::Kind::ps_n, System::Kind::ring));

TEST(TrainingOrder, PriorityShortensTheIteration) {
    Scenario s = training_of(System::Kind::ps_n);
    s.models = {"VGG16"};
    s.rate_bits_per_s = 10'000'000'000;
    const Report in_order = run_verified(s);
    s.priority = true;
    const Report urgent_first = run_verified(s);
    EXPECT_LT(urgent_first.jobs[0].iteration_time, in_order.jobs[0].iteration_time);
}

}  // namespace
}  // namespace atp::sim
