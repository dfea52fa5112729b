// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/top_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sample_report.h"

namespace atp::apps {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

// Two seconds apart: 600 gradients of job 7 are claimed and 60 collide, and the kernel drops 4 packets.
struct Looks {
    Look before{{"10.0.0.1:4790", "10.0.0.2:4790"}, {client::sample_report(), std::nullopt}};
    Look now = before;

    Looks() {
        client::ShardReport& shard = now.reports[0]->shards[0];
        for (auto* counters : {&shard.packets, &shard.jobs[0].counters}) {
            counters->events[ATP_EVENT_CLAIMED] += 600;
            counters->events[ATP_EVENT_COLLIDED] += 60;
        }
        shard.udp.dropped_packets += 4;
        shard.udp.received_bytes += 2'000'000;
    }
    std::vector<std::string> lines(std::size_t width = 80, std::size_t height = 24) const {
        return top_lines(now, before, 2, width, height);
    }
};

TEST(Top, ShowsRatesOfSwitchesAndTheirJobs) {
    const std::vector<std::string> lines = Looks().lines();
    EXPECT_EQ(lines[0], "ATP: 1 of 2 switches up, 2 jobs at switches; q ends");
    EXPECT_THAT(lines[3], StartsWith(" 1 10.0.0.1:4790          8.0M     0     300     30 10.0%      0"));
    EXPECT_EQ(lines[4], " 2 10.0.0.2:4790         does not answer");
    EXPECT_THAT(lines[7], StartsWith("00000007      1 vision"));
    EXPECT_THAT(lines[7], HasSubstr("3/3     300      30  10.0%      0 rank 3 41%"));
    EXPECT_THAT(lines[8], StartsWith("00000008"));
}

TEST(Top, FirstLookAndARestartedSwitchHaveNoRates) {
    Looks looks;
    EXPECT_THAT(top_lines(looks.now, {}, 0, 80, 24)[7], HasSubstr("3/3       0       0      -      0"));
    looks.before.reports[0]->id = 1;
    EXPECT_THAT(looks.lines()[7], HasSubstr("3/3       0       0      -      0"));
}

TEST(Top, LinesFitTheScreen) {
    Looks looks;
    for (int i = 0; i < 30; ++i) {
        looks.now.names.emplace_back("a switch with a very long name that fills the line and goes on after it: 4790");
        looks.now.reports.emplace_back(client::sample_report());
    }
    EXPECT_THAT(looks.lines(40, 24), SizeIs(24));
    EXPECT_THAT(looks.lines(40, 24), Each(testing::Property(&std::string::size, testing::Le(40U))));
    EXPECT_THAT(looks.lines(40, 24), testing::Contains(StartsWith("and ")));
    EXPECT_THAT(looks.lines(80, 24), testing::Contains(StartsWith("00000007"))) << "jobs keep half of the screen";
}

TEST(Top, ParentThatDoesNotAnswerIsNamedWithinEightyColumns) {
    Looks looks;
    looks.now.names[0] = "255.255.255.255:65535";
    looks.now.reports[0]->parent_answers = false;
    looks.now.reports[0]->shards[0].packets.events[ATP_EVENT_COLLIDED] += 540;
    EXPECT_THAT(looks.lines()[3], testing::AllOf(HasSubstr(" 100%"), testing::EndsWith(" no parent")));
}

TEST(Top, LettersOfMoreBytesTakeNoColumnsFromOthers) {
    Looks looks;
    looks.now.names[0] = "\u00E4\u00F6\u00FC:4790";
    looks.now.reports[0]->parent_answers = false;
    EXPECT_THAT(looks.lines()[3], testing::EndsWith(" no parent")) << "it fills 80 columns";
}

TEST(Top, NamesOfOthersControlNoTerminal) {
    Looks looks;
    looks.now.names[0] = "\033[2J";
    EXPECT_THAT(looks.lines()[3], HasSubstr("?[2J"));
}

}  // namespace
}  // namespace atp::apps
