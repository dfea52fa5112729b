// SPDX-License-Identifier: Apache-2.0
// Whether a worker says that it hears its group.
#include "comm/hearing.h"

#include <gtest/gtest.h>

namespace atp::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

protocol::Time at(protocol::Duration since) { return protocol::Time{} + seconds(100) + since; }

// One that has heard its group and said so.
Hearing listener() {
    Hearing hearing;
    EXPECT_TRUE(hearing.handle_message(at(seconds(0))));
    EXPECT_TRUE(hearing.judge(at(seconds(0))));
    return hearing;
}

TEST(Hearing, WhoHasHeardNothingHearsNothing) {
    Hearing hearing;
    EXPECT_FALSE(hearing.judge(at(seconds(0))));
}

TEST(Hearing, TheFirstMessageIsNewsAndTheNextIsNot) {
    Hearing hearing = listener();
    EXPECT_FALSE(hearing.handle_message(at(seconds(1))));
}

TEST(Hearing, AGroupThatFallsSilentIsHeardNoMoreUntilItSpeaksAgain) {
    Hearing hearing = listener();
    EXPECT_TRUE(hearing.judge(at(Hearing::memory - milliseconds(1))));
    EXPECT_FALSE(hearing.judge(at(Hearing::memory)));
    EXPECT_TRUE(hearing.handle_message(at(seconds(60)))) << "news again";
    EXPECT_TRUE(hearing.judge(at(seconds(60))));
}

TEST(Hearing, AGroupWhoseResultsDoNotComeIsDistrustedForAWhile) {
    Hearing hearing = listener();
    for (std::uint64_t i = 0; i <= Hearing::most_results_asked_for; ++i) hearing.handle_own_result();
    EXPECT_FALSE(hearing.judge(at(seconds(1))));
    EXPECT_FALSE(hearing.handle_message(at(seconds(2)))) << "no news while it is distrusted";
    EXPECT_FALSE(hearing.judge(at(seconds(2))));
    EXPECT_TRUE(hearing.handle_message(at(seconds(1) + Hearing::distrust)));
    EXPECT_TRUE(hearing.judge(at(seconds(1) + Hearing::distrust)));
}

TEST(Hearing, LossesAreNoReasonToDistrustWhatIsHeardBesides) {
    Hearing hearing = listener();
    for (std::uint64_t i = 0; i <= Hearing::most_results_asked_for; ++i) hearing.handle_own_result();
    hearing.handle_group_result();
    EXPECT_TRUE(hearing.judge(at(seconds(1))));
    for (std::uint64_t i = 0; i < Hearing::most_results_asked_for; ++i) hearing.handle_own_result();
    EXPECT_TRUE(hearing.judge(at(seconds(2)))) << "nor are a few, where nothing else was to come";
}

}  // namespace
}  // namespace atp::comm
