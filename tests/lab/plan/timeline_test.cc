// SPDX-License-Identifier: Apache-2.0
#include "plan/timeline.h"

#include <gtest/gtest.h>

namespace atp::plan {
namespace {

using std::chrono::microseconds;

// The capacity of the resource is 1 byte per nanosecond. Active jobs share it equally.
Timeline::Rates shared_link(std::vector<Share>& shares) {
    return [&shares](const std::vector<bool>& active) -> const std::vector<Share>& {
        const auto senders = static_cast<double>(std::count(active.begin(), active.end(), true));
        shares.assign(active.size(), {.rate = 1e9 / std::max(senders, 1.0)});
        return shares;
    };
}

std::vector<Course> run(Timeline& timeline) {
    std::vector<Share> shares;
    return timeline.run(shared_link(shares), 1);
}

workload::Workload::Bucket bucket(std::uint64_t bytes, Duration ready) {
    return {.elements = bytes / sizeof(float), .ready = ready};
}

TEST(Timeline, TransferWithoutComputationTakesItsBytesAndTheLatency) {
    const workload::Workload workload{.buckets = {bucket(40'000, {})}, .forward = {{.compute = {}, .last = 1}}};
    Timeline timeline;
    timeline.add(workload, microseconds(3), false);
    const Course course = run(timeline)[0];
    EXPECT_EQ(course.iteration, microseconds(43));
    EXPECT_NEAR(static_cast<double>(course.limited[0].count()), 40'000, 4'000);
}

TEST(Timeline, TransferTimeCountsTwiceWithWholeBuckets) {
    const workload::Workload workload{.buckets = {bucket(40'000, {})}, .forward = {{.compute = {}, .last = 1}}};
    Timeline timeline;
    timeline.add(workload, microseconds(3), true);
    EXPECT_EQ(run(timeline)[0].iteration, microseconds(83));
}

// Backward: 10 us until the first bucket, 30 us until the second. The first is sent meanwhile, so only the second
// delays the forward pass. Forward: first the layer of the second bucket, 5 us, then the other layer, 5 us.
TEST(Timeline, SumsOverlapWithTheBackwardPass) {
    const workload::Workload workload{
        .buckets = {bucket(12'000, microseconds(10)), bucket(8'000, microseconds(30))},
        .forward = {{.compute = microseconds(5), .first = 1, .last = 2}, {.compute = microseconds(5), .last = 1}}};
    Timeline timeline;
    timeline.add(workload, {}, false);
    EXPECT_EQ(run(timeline)[0].iteration, microseconds(30 + 8 + 10));
}

TEST(Timeline, BucketsWaitForEarlierOnes) {
    const workload::Workload workload{
        .buckets = {bucket(40'000, microseconds(10)), bucket(8'000, microseconds(30))},
        .forward = {{.compute = microseconds(5), .first = 1, .last = 2}, {.compute = microseconds(5), .last = 1}}};
    Timeline timeline;
    timeline.add(workload, {}, false);
    EXPECT_EQ(run(timeline)[0].iteration, microseconds(10 + 40 + 8 + 10));
}

TEST(Timeline, JobsAreSlowerOnlyWhileBothSend) {
    const workload::Workload quiet{.buckets = {bucket(10'000, microseconds(90))},
                                   .forward = {{.compute = {}, .last = 1}}};
    Timeline alone;
    alone.add(quiet, {}, false);
    EXPECT_EQ(run(alone)[0].iteration, microseconds(100));
    const workload::Workload busy{.buckets = {bucket(10'000, {})}, .forward = {{.compute = {}, .last = 1}}};
    Timeline both;
    both.add(quiet, {}, false);
    both.add(busy, {}, false);
    const std::vector<Course> courses = run(both);
    EXPECT_EQ(courses[0].iteration, microseconds(110));
    EXPECT_NEAR(static_cast<double>(courses[1].iteration.count()), 11'000, 500);
}

}  // namespace
}  // namespace atp::plan
