// SPDX-License-Identifier: Apache-2.0
// When a peer counts as failed.
#include "control/failure_detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "control/timing.h"
#include "support/byte_archive.h"

namespace atp::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = FailureDetector::State;
using Peer = FailureDetector::Peer;

constexpr Duration hold = seconds(3);
Time at(int ms) { return Time{} + seconds(100) + milliseconds(ms); }

TEST(FailureDetector, PeerThatSendsOnItsOwnIsSilentAfterTheHoldTime) {
    FailureDetector detector;
    EXPECT_EQ(detector.assess(at(0), hold), State::alive) << "it was never heard";
    detector.handle_received(at(0));
    EXPECT_EQ(detector.assess(at(2999), hold), State::alive);
    EXPECT_EQ(detector.poll_timeout(hold), at(3000));
    EXPECT_EQ(detector.assess(at(3000), hold), State::silent);
    EXPECT_EQ(detector.lasted(at(3000)), hold);
    detector.handle_received(at(3001));
    EXPECT_EQ(detector.assess(at(3002), hold), State::alive);
}

TEST(FailureDetector, PeerThatOnlyAnswersIsSilentAfterAQuestionOnly) {
    FailureDetector detector(Peer::answers);
    detector.handle_received(at(0));
    EXPECT_EQ(detector.assess(at(60'000), hold), State::alive);
    EXPECT_EQ(detector.poll_timeout(hold), never);
    detector.handle_asked(at(1000));
    detector.handle_asked(at(2000));
    EXPECT_EQ(detector.assess(at(3999), hold), State::alive);
    EXPECT_EQ(detector.assess(at(4000), hold), State::silent) << "counted from the first question";
}

TEST(FailureDetector, ReportsThatContinueCloseThePeer) {
    FailureDetector detector;
    detector.handle_received(at(0));
    EXPECT_TRUE(detector.handle_refused(at(100)));
    EXPECT_TRUE(detector.suspects());
    for (int ms = 150; ms <= 500; ms += 50) {
        detector.handle_asked(at(ms));
        EXPECT_FALSE(detector.handle_refused(at(ms)));
    }
    EXPECT_EQ(detector.assess(at(499), hold), State::alive);
    EXPECT_EQ(detector.assess(at(500), hold), State::closed);
    EXPECT_EQ(detector.lasted(at(500)), timing.error_persists);
}

TEST(FailureDetector, OneReportClosesThePeerIfQuestionsStayUnanswered) {
    FailureDetector detector;
    detector.handle_received(at(0));
    detector.handle_refused(at(0));
    EXPECT_EQ(detector.assess(at(600), hold), State::alive) << "nothing was asked after the report";
    detector.handle_asked(at(50));
    detector.handle_asked(at(100));
    EXPECT_EQ(detector.assess(at(599), hold), State::alive);
    EXPECT_EQ(detector.assess(at(600), hold), State::closed);
}

TEST(FailureDetector, MessageAfterAReportEndsTheSuspicion) {
    FailureDetector detector;
    detector.handle_refused(at(0));
    detector.handle_asked(at(50));
    detector.handle_asked(at(100));
    detector.handle_received(at(150));
    EXPECT_FALSE(detector.suspects());
    EXPECT_EQ(detector.assess(at(1000), hold), State::alive);
}

TEST(FailureDetector, H80_OwnPauseCountsNeitherAsSilenceNorAsAReportThatContinues) {
    FailureDetector detector;
    detector.handle_received(at(0));
    detector.handle_refused(at(100));
    detector.handle_asked(at(150));
    detector.handle_asked(at(200));
    detector.handle_own_pause(seconds(20));
    EXPECT_EQ(detector.assess(at(20'500), hold), State::alive);
    EXPECT_EQ(detector.assess(at(20'700), hold), State::closed);
}

// Each JOIN and each answer is lost with this probability, whatever happened to others.
TEST(FailureDetector, RandomLossOf1PercentAccusesAMemberOf1024LessThanOnceInTenYears) {
    constexpr double loss = 0.01;
    constexpr double members = 1024;
    const double interval = to_seconds(refresh_of(timing.hold));
    const double exchanges = 10.0 * 365 * 24 * 3600 / interval * members;
    // Between two JOINs that arrive `hold` apart lie so many that are lost.
    const int lost_in_a_row = timing.joins_of_hold - 1;
    const double silent_members = exchanges * std::pow(loss, lost_in_a_row);
    const double silent_switches = exchanges * std::pow(1 - (1 - loss) * (1 - loss), lost_in_a_row);
    RecordProperty("false_alarms_in_ten_years", std::to_string(silent_members + silent_switches));
    EXPECT_LT(silent_members + silent_switches, 1e-5);
}

TEST(FailureDetector, StateIsSavedAsAWhole) {
    FailureDetector from(Peer::answers);
    from.handle_received(at(1));
    from.handle_asked(at(2));
    from.handle_refused(at(3));
    from.handle_asked(at(4));
    from.handle_asked(at(5));
    FailureDetector to;
    ASSERT_TRUE(testing::copy_state(from, to));
    EXPECT_EQ(to.received_at(), at(1));
    EXPECT_EQ(to.silent_since(), at(2));
    EXPECT_EQ(to.assess(at(700), hold), State::closed);
}

}  // namespace
}  // namespace atp::control
