// SPDX-License-Identifier: Apache-2.0
// If only a part of a job passes this switch, the switch forwards all packets of the job unaggregated.
#include "control/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace atp::control {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t job = 7;

// A job whose counters Coverage assesses once per second.
struct ObservedJob {
    Coverage coverage;
    protocol::SwitchCounters counters;
    Time now{seconds(1000)};

    // Adds one second with these events. Returns true if the switch aggregates the job after it.
    bool second(std::uint64_t claimed, std::uint64_t completed, std::uint64_t fetched) {
        counters.events[ATP_EVENT_CLAIMED] += claimed;
        counters.events[ATP_EVENT_COMPLETED] += completed;
        counters.events[ATP_EVENT_FETCHED] += fetched;
        now += seconds(1);
        return coverage.assess(job, counters, now);
    }
    bool fruitless_second() { return second(100, 0, 100); }
    // True if the switch stops aggregating the job after exactly `fruitless_seconds`.
    bool gives_up() {
        for (unsigned i = 1; i < Coverage::fruitless_seconds; ++i) {
            if (!fruitless_second()) return false;
        }
        return !fruitless_second();
    }
    // Returns the time for which the switch forwards the job unaggregated.
    seconds pause() {
        const Time before = now;
        while (!fruitless_second() && now < before + 2 * Coverage::longest_pause) {
        }
        return std::chrono::duration_cast<seconds>(now - before);
    }
};

TEST(Coverage, JobWithoutCompletionsIsForwardedUnaggregated) {
    ObservedJob observed;
    EXPECT_TRUE(observed.gives_up());
    EXPECT_THAT(observed.coverage.passing(), ElementsAre(job));
    observed.coverage.forget(job);
    EXPECT_THAT(observed.coverage.passing(), IsEmpty());
}

TEST(Coverage, EachPauseIsTwiceAsLongUntilFragmentsCompleteAgain) {
    ObservedJob observed;
    for (Duration pause = Coverage::first_pause; pause < Coverage::longest_pause; pause *= 2) {
        ASSERT_TRUE(observed.gives_up());
        ASSERT_EQ(observed.pause(), pause);
        EXPECT_THAT(observed.coverage.passing(), IsEmpty());
    }
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(observed.gives_up());
        EXPECT_EQ(observed.pause(), Coverage::longest_pause);
    }
    EXPECT_TRUE(observed.second(1000, 990, 10)) << "fragments of the job complete again";
    ASSERT_TRUE(observed.gives_up());
    EXPECT_EQ(observed.pause(), Coverage::first_pause);
}

TEST(Coverage, JobWithCompletionsStaysAggregatedDespiteFetches) {
    ObservedJob observed;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(observed.second(100, 10, 90));
}

TEST(Coverage, CollisionsAndFlushesKeepTheJobAggregated) {
    ObservedJob observed;
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(observed.second(100, 0, 49));
}

TEST(Coverage, LateWorkerKeepsTheJobAggregated) {
    ObservedJob observed;
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(observed.second(256, 0, 256));
        for (int idle = 0; idle < i % 3 + 1; ++idle) EXPECT_TRUE(observed.second(0, 0, 0));
        EXPECT_TRUE(observed.second(Coverage::fewest_claims - 1, 0, Coverage::fewest_claims - 1));
    }
}

}  // namespace
}  // namespace atp::control
