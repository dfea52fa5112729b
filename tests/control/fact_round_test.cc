// SPDX-License-Identifier: Apache-2.0
// Values of a round: every order of reading gives the same facts, or the same error.
#include "control/fact_round.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/fails.h"

namespace atp::control {
namespace {

using Values = std::vector<std::string>;

FactRound round_of(const Values& values, std::uint32_t world = 3) {
    FactRound round(world, {0, 1, 2});
    for (std::uint32_t rank = 0; rank < values.size(); ++rank) round.take(rank, values[rank]);
    return round;
}

std::string facts_with(const std::string& terms) {
    return message_text(wire::RankFacts{.job = 1, .token = 2, .terms = terms});
}

TEST(FactRound, H93_EveryOrderOfReadingGivesTheSameValues) {
    std::vector<std::uint32_t> order{0, 1, 2};
    do {
        FactRound round(3, {0, 1, 2});
        for (const std::uint32_t rank : order) {
            EXPECT_FALSE(round.complete());
            round.take(rank, stamped(3, "of " + std::to_string(rank)));
            round.take(rank, stamped(3, "a second time"));
        }
        ASSERT_TRUE(round.complete());
        EXPECT_EQ(round.values(), (Values{"of 0", "of 1", "of 2"}));
    } while (std::ranges::next_permutation(order).found);
}

TEST(FactRound, MissingRanksAreListed) {
    FactRound round(3, {0, 2});
    round.take(2, stamped(3, ""));
    EXPECT_EQ(round.missing(), std::vector<std::uint32_t>{0});
}

TEST(FactRound, H94_RankOfAnotherWorldIsNamedOnEveryRank) {
    const std::string text = "rank 1 expects a world of 6 ranks, the others 3: use one world size";
    const FactRound of_others = round_of({stamped(3, ""), stamped(6, ""), stamped(3, "")});
    EXPECT_EQ(of_others.widest(), 6U);
    EXPECT_TRUE(fails(of_others.values(), {.reason = Reason::mismatched, .text = text}));
    FactRound own(6, {0, 1, 2, 3, 4, 5});
    for (std::uint32_t rank = 0; rank < 6; ++rank) own.take(rank, stamped(rank == 1 ? 6 : 3, ""));
    EXPECT_EQ(own.values().error().text, text);
}

TEST(FactRound, ValueWithoutAWorldIsMismatched) {
    EXPECT_EQ(round_of({stamped(3, ""), "x", stamped(3, "")}).values().error().reason, Reason::mismatched);
}

TEST(FactRound, RankThatGivesUpIsNamedWithItsReason) {
    const Error error{
        .operation = Operation::join, .reason = Reason::rejected, .peer = "10.0.0.1:4790", .text = "full"};
    const FactRound round = round_of({stamped(3, ""), stamped(notice_of(1, error)), stamped(3, "")});
    ASSERT_TRUE(round.notice());
    const auto values = round.values();
    EXPECT_TRUE(fails(
        values, {.reason = Reason::rejected, .peer = "rank 1", .text = "gave up: join 10.0.0.1:4790: rejected: full"}));
}

TEST(FactRound, DisagreementThatAnotherRankFoundIsTheSameError) {
    const Error world = round_of({stamped(3, ""), stamped(6, ""), stamped(3, "")}).values().error();
    const Error options = agreed_facts(Values{facts_with("lanes=0"), facts_with("lanes=8")}, 0).error();
    EXPECT_EQ(world.peer, "rank 1");
    for (const Error& error : {world, options}) {
        EXPECT_EQ(to_string(failure_of(notice_of(2, error)).value()), to_string(error));
    }
}

TEST(FactRound, OneOtherRankIsNamed) {
    EXPECT_EQ(round_of({stamped(2, ""), stamped(3, "")}, 2).values().error().text,
              "rank 1 expects a world of 3 ranks, rank 0 2: use one world size");
    EXPECT_EQ(agreed_facts(Values{facts_with("lanes=0"), facts_with("lanes=8")}, 0).error().text,
              "rank 1 has the options \"lanes=8\", rank 0 \"lanes=0\": use equal options on all ranks");
}

TEST(FactRound, UnreadableNoticeIsAFailureToo) {
    for (const std::string text : {"", " ", "1 2 text"}) {
        EXPECT_EQ(round_of({stamped(0, text)}).values().error().reason, Reason::failed) << text;
    }
}

TEST(FactRound, H94_MinorityAndItsOptionsAreNamedOnEveryRank) {
    const Values values{facts_with("lanes=0 window=16"), facts_with("lanes=0 window=16"),
                        facts_with("lanes=0 window=32")};
    for (std::uint32_t own = 0; own < 3; ++own) {
        const auto facts = agreed_facts(values, own);
        ASSERT_TRUE(fails(facts, {.reason = Reason::mismatched, .peer = "rank 2"}));
        EXPECT_EQ(facts.error().text,
                  "rank 2 has the options \"window=32\", the others \"window=16\": use equal options on all ranks");
    }
    const auto equal = agreed_facts(std::span(values).first(2), 0);
    ASSERT_TRUE(equal);
    EXPECT_EQ(equal->at(1).terms, "lanes=0 window=16");
}

TEST(FactRound, MessageOfAnotherVersionNamesTheRankAndBothVersions) {
    std::string newer = facts_with("");
    newer[0] = static_cast<char>(wire::control_version + 1);
    const auto facts = agreed_facts(Values{facts_with(""), newer}, 0);
    ASSERT_TRUE(fails(facts, {.reason = Reason::version_mismatch, .peer = "rank 1"}));
    const auto version = std::to_string((wire::control_version & 0xFU) + 1);
    EXPECT_NE(facts.error().text.find("it has version " + version + " of the messages"), std::string::npos);
    for (const std::string& text : {std::string(), std::string("x"), facts_with("").substr(0, 20)}) {
        EXPECT_TRUE(fails(agreed_facts(Values{text}, 0), {.text = ::testing::HasSubstr("cannot be read")}));
    }
}

}  // namespace
}  // namespace atp::control
