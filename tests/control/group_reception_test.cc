// SPDX-License-Identifier: Apache-2.0
// Conditions under which a worker reports that it receives its multicast group.
#include "control/group_reception.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace atp::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Time at(Duration since) { return Time{} + seconds(100) + since; }

// The state of a worker that has received a message to its group and has reported this.
GroupReception listener() {
    GroupReception hearing;
    EXPECT_TRUE(hearing.handle_message(at(seconds(0))));
    EXPECT_TRUE(hearing.assess(at(seconds(0)), true));
    return hearing;
}

// The worker receives one unicast result (an answer to a PROBE) too many, and no result from the group.
void miss_results(GroupReception& hearing) {
    for (std::uint64_t i = 0; i <= GroupReception::most_results_asked_for; ++i)
        hearing.handle_result(Receipt::asked_for);
}

TEST(GroupReception, GroupWithoutMessagesIsNotReceived) {
    GroupReception hearing;
    EXPECT_FALSE(hearing.assess(at(seconds(0)), true));
}

TEST(GroupReception, SecondMessageOfTheGroupChangesNothing) {
    GroupReception hearing = listener();
    EXPECT_FALSE(hearing.handle_message(at(seconds(1))));
}

TEST(GroupReception, GroupSilentForItsMemoryIsNotReceivedUntilTheNextMessage) {
    GroupReception hearing = listener();
    EXPECT_TRUE(hearing.assess(at(GroupReception::memory - milliseconds(1)), true));
    EXPECT_FALSE(hearing.assess(at(GroupReception::memory), true));
    EXPECT_TRUE(hearing.handle_message(at(seconds(60))))
        << "the message changes the state: the worker receives its group again";
    EXPECT_TRUE(hearing.assess(at(seconds(60)), true));
}

TEST(GroupReception, GroupWithoutResultsIsUnreachableForTheFirstPause) {
    GroupReception hearing = listener();
    miss_results(hearing);
    EXPECT_FALSE(hearing.assess(at(seconds(1)), true));
    const auto end = seconds(1) + GroupReception::first_pause;
    EXPECT_FALSE(hearing.handle_message(at(end - milliseconds(1)))) << "a message within the pause changes nothing";
    EXPECT_FALSE(hearing.assess(at(end - milliseconds(1)), true));
    EXPECT_TRUE(hearing.handle_message(at(end)));
    EXPECT_TRUE(hearing.assess(at(end), true));
}

TEST(GroupReception, H108_ResultsToEachSayNothingAboutTheGroup) {
    GroupReception hearing = listener();
    miss_results(hearing);
    hearing.handle_result(Receipt::to_each);
    EXPECT_TRUE(hearing.assess(at(seconds(1)), true)) << "the switch did not use the group, and its copies were late";
    miss_results(hearing);
    EXPECT_FALSE(hearing.assess(at(seconds(2)), true)) << "the interval before does not count";
}

TEST(GroupReception, MessagesBeforeAPauseAreForgotten) {
    GroupReception hearing = listener();
    miss_results(hearing);
    EXPECT_FALSE(hearing.assess(at(seconds(1)), true));
    EXPECT_FALSE(hearing.assess(at(seconds(1) + GroupReception::first_pause), true))
        << "messages from before the pause do not count";
}

TEST(GroupReception, GroupWithTooFewResultsIsUnreachable) {
    GroupReception hearing = listener();
    miss_results(hearing);
    hearing.handle_result(Receipt::once);
    EXPECT_FALSE(hearing.assess(at(seconds(1)), true));
}

TEST(GroupReception, EachPauseIsTwiceAsLongUntilAResultArrives) {
    GroupReception hearing = listener();
    Duration now{};
    for (Duration pause = GroupReception::first_pause;; pause = std::min(2 * pause, GroupReception::longest_pause)) {
        miss_results(hearing);
        EXPECT_FALSE(hearing.assess(at(now), true));
        EXPECT_FALSE(hearing.handle_message(at(now + pause - milliseconds(1))));
        now += pause;
        EXPECT_TRUE(hearing.handle_message(at(now)));
        EXPECT_TRUE(hearing.assess(at(now), true));
        if (now > 3 * GroupReception::longest_pause) break;
    }
    hearing.handle_result(Receipt::once);
    EXPECT_TRUE(hearing.assess(at(now), true));
    miss_results(hearing);
    EXPECT_FALSE(hearing.assess(at(now), true));
    EXPECT_TRUE(hearing.handle_message(at(now + GroupReception::first_pause)));
}

TEST(GroupReception, NumberOfHurriedJoinsWithoutMessagesIsBounded) {
    GroupReception hearing;
    for (unsigned i = 0; i < GroupReception::most_hurried; ++i) {
        EXPECT_FALSE(hearing.assess(at(seconds(0)), true));
        EXPECT_TRUE(hearing.hurries()) << i;
    }
    EXPECT_FALSE(hearing.assess(at(seconds(0)), true));
    EXPECT_FALSE(hearing.hurries());
    EXPECT_FALSE(listener().hurries()) << "this worker receives its group";
}

TEST(GroupReception, WorkerWithoutMessagesRejoinsTheGroupPeriodically) {
    GroupReception hearing;
    for (unsigned i = 0; i < 2 * GroupReception::joins_between_reports; ++i) {
        EXPECT_FALSE(hearing.assess(at(seconds(0)), false));
        EXPECT_FALSE(hearing.reports_again()) << "the switch has not admitted the worker yet";
    }
    for (unsigned i = 1; i <= 3 * GroupReception::joins_between_reports; ++i) {
        EXPECT_FALSE(hearing.assess(at(seconds(0)), true));
        EXPECT_EQ(hearing.reports_again(), i % GroupReception::joins_between_reports == 0) << i;
    }
    EXPECT_FALSE(listener().reports_again()) << "this worker receives its group";
}

TEST(GroupReception, GroupWithEnoughResultsStaysReceivedDespiteLosses) {
    GroupReception hearing = listener();
    miss_results(hearing);
    for (std::uint64_t i = 0; i <= GroupReception::most_results_asked_for + 1; ++i)
        hearing.handle_result(Receipt::once);
    EXPECT_TRUE(hearing.assess(at(seconds(1)), true));
    for (std::uint64_t i = 0; i < GroupReception::most_results_asked_for; ++i)
        hearing.handle_result(Receipt::asked_for);
    EXPECT_TRUE(hearing.assess(at(seconds(2)), true))
        << "a few unicast results alone do not make the group unreachable";
}

}  // namespace
}  // namespace atp::control
