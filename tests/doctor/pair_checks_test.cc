// SPDX-License-Identifier: Apache-2.0
#include "doctor/pair_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atp::doctor {
namespace {

using testing::HasSubstr;

const std::vector<std::string> addresses{"10.0.0.1:9", "10.0.0.2:9", "10.0.0.3:9"};

TEST(PairChecks, OneLineSaysThatAllReachEachOther) {
    const auto findings = check_pairs({.addresses = addresses, .faults = {}, .lanes = 352});
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].status, Status::ok);
    EXPECT_EQ(findings[0].found, "all 3 ranks reach each other by UDP; every path carries packets of 352 lanes");
}

TEST(PairChecks, RankThatCannotReceiveIsNamed) {
    const auto findings = check_pairs({.addresses = addresses, .faults = {{1, 1, "port in use"}}, .lanes = 352});
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].name, "rank 1");
    EXPECT_EQ(findings[0].found, "it cannot receive: port in use");
}

TEST(PairChecks, RankThatNoOtherReachesIsOneFinding) {
    const auto findings = check_pairs({.addresses = addresses,
                                       .faults = {{0, 2, "no answer"}, {1, 2, "no answer"}, {2, 0, "refused"}},
                                       .lanes = 352});
    ASSERT_EQ(findings.size(), 2U);
    EXPECT_EQ(findings[0].name, "rank 2 to rank 0");
    EXPECT_EQ(findings[0].found, "no answer from 10.0.0.1:9: refused");
    EXPECT_THAT(findings[0].fix, HasSubstr("firewalls"));
    EXPECT_EQ(findings[1].name, "rank 2");
    EXPECT_THAT(findings[1].found, HasSubstr("no other rank reaches it at 10.0.0.3:9"));
}

}  // namespace
}  // namespace atp::doctor
