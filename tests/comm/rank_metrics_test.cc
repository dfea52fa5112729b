// SPDX-License-Identifier: Apache-2.0
#include "comm/rank_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "fabric.h"

namespace atp::comm {
namespace {

using testing::HasSubstr;
using testing::Not;

MeasuredRank rank_of(std::uint32_t number) {
    return {.job = 7,
            .job_name = "resnet-50",
            .group = "default",
            .rank = number,
            .world = 4,
            .layout = "memory",
            .counters = [] { return RankCounters{.operations = 12, .waiting_us = 1'500'000}; },
            .has_failed = [] { return false; }};
}

TEST(RankMetrics, TextHasTheJobItsSizeAndTimesInSeconds) {
    const std::string text = metrics_text({rank_of(3)}, metrics::TextFormat::prometheus);
    EXPECT_THAT(text,
                HasSubstr("atp_rank_info{job=\"00000007\",group=\"default\",rank=\"3\",name=\"resnet-50\",world=\"4\","
                          "layout=\"memory\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("atp_rank_operations_total{job=\"00000007\",group=\"default\",rank=\"3\"} 12\n"));
    EXPECT_THAT(text, HasSubstr("atp_rank_waiting_seconds_total{job=\"00000007\",group=\"default\",rank=\"3\"} 1.5\n"));
    EXPECT_THAT(text, HasSubstr("# HELP atp_rank_waiting_seconds_total Seconds for which threads"));
    EXPECT_THAT(text, Not(HasSubstr("icroseconds")));
    EXPECT_THAT(text, HasSubstr("atp_rank_failed{job=\"00000007\",group=\"default\",rank=\"3\"} 0\n"));
}

std::string shown() { return metrics_of_process(metrics::TextFormat::prometheus); }

TEST(RankMetrics, ProcessShowsARankWhileItsEntryExists) {
    EXPECT_EQ(shown(), "");
    auto first = std::make_unique<MetricsEntry>(rank_of(0));
    auto second = std::make_unique<MetricsEntry>(rank_of(1));
    EXPECT_THAT(shown(), HasSubstr("rank=\"0\""));
    EXPECT_THAT(shown(), HasSubstr("rank=\"1\""));
    first.reset();
    EXPECT_THAT(shown(), Not(HasSubstr("rank=\"0\"")));
    second.reset();
    EXPECT_EQ(shown(), "");
    EXPECT_EQ(metrics_of_process(metrics::TextFormat::openmetrics), "# EOF\n");
}

TEST(RankMetrics, CommunicatorShowsWhatItCountsUntilItEnds) {
    Options options = test::small_options();
    options.host_level = true;
    options.job_name = "resnet-50";
    test::Job job{1, {""}, options};
    auto formed = job.form(0);
    ASSERT_TRUE(formed) << to_string(formed.error());
    std::vector<float> values(4, 1.0F);
    auto sum = (*formed)->all_reduce({values.data(), values.data(), 4}, numeric::ElementType::float32, Reduction::sum);
    ASSERT_TRUE(sum && (*sum)->wait());
    EXPECT_THAT(shown(), HasSubstr("name=\"resnet-50\",world=\"1\",layout=\"memory\"} 1\n"));
    EXPECT_THAT(shown(), HasSubstr("rank=\"0\"} 1\n")) << "operation";
    formed->reset();
    EXPECT_EQ(shown(), "");
}

}  // namespace
}  // namespace atp::comm
