// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/stats_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_report.h"

namespace atp::apps {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StatsText, TotalsAddUpThreadsAndTheKernelByName) {
    const StatsTotals totals = totals_of(client::sample_report());
    EXPECT_EQ(totals.at("claimed"), 101U + 30U);
    EXPECT_EQ(totals.at("collisions"), 107U);
    EXPECT_EQ(totals.at("refused"), 3U + 5U);
    EXPECT_EQ(totals.at("received"), 400U);
    EXPECT_EQ(totals.at("sent_bytes"), 407U);
    EXPECT_EQ(totals.at("dropped_by_kernel"), 403U);
    EXPECT_EQ(totals.at("unrouted"), 200U);
}

TEST(StatsText, ShowsSwitchKernelJobsAndChannels) {
    const std::string text = stats_text(client::sample_report(), {}, 0);
    EXPECT_THAT(text, HasSubstr("atp 1.2.3 at 127.0.0.1:4790, up 12 s, 64.0 MB of aggregators of 352 lanes, parent "
                                "[2001:db8::1]:4790\n"));
    EXPECT_THAT(text, HasSubstr("inside the kernel: eth1 native, eth2 generic; 44444 aggregators of 352 lanes;"));
    EXPECT_THAT(text, HasSubstr("\nframes marked: eth1 12 (link of 10000 Mbit)\n"));
    EXPECT_THAT(text, HasSubstr("  00000007        501        502        503        507     1021      516      534"));
    EXPECT_THAT(
        text,
        HasSubstr(
            "job 00000007 (resnet-50) channel 1 of tenant vision: level 1, 3 of 3 joined, server here, results by "
            "multicast; waits 41.2 % of the time "
            "for rank 3 (99 % of all waiting; last in 97 % of the fragments)\n"));
    EXPECT_THAT(
        text,
        HasSubstr("\nvision                       1 of 8        1 of 64         42 of 2147       300 of 30000\n"));
    EXPECT_THAT(
        text,
        HasSubstr("\nspeech                            0              0                  0             0 of 0\n"));
    client::SwitchReport open = client::sample_report();
    open.is_open = true;
    EXPECT_THAT(stats_text(open, {}, 0), HasSubstr("[2001:db8::1]:4790, open: no tenants\n"));
    EXPECT_THAT(
        text,
        HasSubstr(
            "job 00000008 channel 0: level 0, 1 of 2 joined, waiting, results by unicast; waits 0.0 % of the time for "
            "unit 2 (60 % of all waiting; last in 0 % of the fragments)\n"));
}

TEST(StatsText, RatesNeedAnEarlierReport) {
    client::SwitchReport report = client::sample_report();
    const StatsTotals before = totals_of(report);
    EXPECT_THAT(stats_text(report, {}, 0), Not(HasSubstr("/s")));
    report.shards[0].udp.received_packets += 50;
    EXPECT_THAT(stats_text(report, before, 2), HasSubstr("received                          450             25/s\n"));
}

TEST(StatsText, ShowsTheSameWithAdditionalParts) {
    client::SwitchReport report = client::sample_report();
    const std::string text = stats_text(report, {}, 0);
    report.parts = {{"emulated_ports", R"({"loss":0.25})"}};
    report.shards[0].parts = {{"switchml", R"({"packets":{"late":3}})"}, {"ports", "[3]"}};
    EXPECT_EQ(stats_text(report, {}, 0), text);
}

}  // namespace
}  // namespace atp::apps
