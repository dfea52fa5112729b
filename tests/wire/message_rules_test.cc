// SPDX-License-Identifier: Apache-2.0
#include "wire/message_rules.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/control_messages.h"

namespace atp::wire {
namespace {

TEST(JoinRules, MembersAreNumberedFromZeroWithoutGaps) {
    EXPECT_TRUE(has_no_gap(0x1) && has_no_gap(0x7) && has_no_gap(0xFFFFFFFF));
    EXPECT_FALSE(has_no_gap(0) || has_no_gap(0x2) || has_no_gap(0x5));
}

TEST(JoinRules, ScaleIsPositiveAndFinite) {
    EXPECT_TRUE(is_positive_and_finite(1e8) && is_positive_and_finite(std::numeric_limits<double>::denorm_min()));
    EXPECT_FALSE(is_positive_and_finite(0) || is_positive_and_finite(-1));
    EXPECT_FALSE(is_positive_and_finite(std::numeric_limits<double>::infinity()));
    EXPECT_FALSE(is_positive_and_finite(std::numeric_limits<double>::quiet_NaN()));
}

TEST(JoinRules, TermsHaveALaneForElementsAndAGroupThatIsOne) {
    ChannelTerms terms = testing::join_of_worker().terms;
    terms.group = {};
    terms.lanes = 2, terms.audit = true;
    EXPECT_TRUE(terms_fit(terms));
    terms.lanes = 1;
    EXPECT_FALSE(terms_fit(terms));
    terms.audit = false;
    EXPECT_TRUE(terms_fit(terms));
    terms.group = {.family = 4, .port = 4792, .host = {std::byte{239}, std::byte{1}}};
    EXPECT_TRUE(terms_fit(terms));
    terms.group.host[0] = std::byte{192};
    EXPECT_FALSE(terms_fit(terms)) << "results would go to one host that did not ask for them";
    terms.group = {.family = 6, .port = 4792, .host = {std::byte{0xFF}, std::byte{0x12}}};
    EXPECT_TRUE(terms_fit(terms));
    terms.group.host[0] = std::byte{0xFE};
    EXPECT_FALSE(terms_fit(terms));
}

TEST(JoinRules, DirectUnitHasOneMember) {
    EXPECT_TRUE(unit_fits({.members = 0x1, .mask0 = 0x1, .direct = true, .ranks = {7}}));
    EXPECT_FALSE(unit_fits({.members = 0x1, .mask0 = 0x3, .direct = true, .ranks = {7}}));
    EXPECT_FALSE(unit_fits({.members = 0, .mask0 = 0x3}));
    EXPECT_FALSE(unit_fits({.members = 0x1, .mask0 = 0x1, .ranks = {ATP_WORKER_ALL}})) << "no rank has this number";
}

TEST(JoinRules, HoldTimeIsNotStatedOrFromATenthOfASecondToAMinute) {
    EXPECT_TRUE(is_hold(0) && is_hold(100) && is_hold(3000) && is_hold(60'000));
    EXPECT_FALSE(is_hold(1) || is_hold(99) || is_hold(60'001) || is_hold(~0U));
}

TEST(JoinRules, JoinCoversWhatItsLevelNeeds) {
    Join join = testing::join_of_worker();
    join.terms.mask1 = 0x3;
    const JoiningUnit whole{.unit = 0, .members = 0x3, .mask0 = 0x3, .ranks = {0, 1}};
    const JoiningUnit alone{.unit = 0, .members = 0x2, .mask0 = 0x3, .ranks = {1}};
    const JoiningUnit other{.unit = 1, .members = 0x1, .mask0 = 0x1, .direct = true, .ranks = {2}};
    const auto fits = [&](std::uint8_t level, std::vector<JoiningUnit> units) {
        join.level = level;
        join.units = std::move(units);
        return join_fits(join);
    };
    EXPECT_TRUE(fits(0, {alone}));
    EXPECT_FALSE(fits(0, {whole}) || fits(0, {other}));
    EXPECT_TRUE(fits(1, {whole}) && fits(1, {alone}) && fits(1, {other}));
    EXPECT_FALSE(fits(1, {whole, other}));
    EXPECT_TRUE(fits(2, {whole, other}));
    EXPECT_TRUE(fits(2, {whole})) << "unit 1 is missing, but without a cookie only RETRY answers";
    join.cookie = 1;
    EXPECT_TRUE(fits(2, {whole, other}));
    EXPECT_FALSE(fits(2, {whole})) << "unit 1 is missing";
    EXPECT_FALSE(fits(2, {whole, whole}));
    EXPECT_FALSE(fits(2, {alone, other}));
}

}  // namespace
}  // namespace atp::wire
