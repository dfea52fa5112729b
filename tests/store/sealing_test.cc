// SPDX-License-Identifier: Apache-2.0
// Rounds of ranks that have a key. tests/comm/sealed_formation_test.cc forms whole jobs over a store that lies.
#include "store/sealing.h"

#include <gtest/gtest.h>

#include "keys/key_file.h"
#include "net/clock.h"
#include "store/memory_store.h"
#include "store/rendezvous.h"
#include "store_fixture.h"

namespace atp::store {
namespace {

using test::error_of;
using test::longest_wait;
using Values = std::vector<std::string>;

class SealedRounds : public testing::Test {
  protected:
    [[nodiscard]] static crypto::TenantKey key_of(std::uint32_t id) {
        return {.id = id, .tenant = "t", .at_switch = {}, .key = keys::random_key()};
    }
    // Rank `rank` of as many as there are keys, which is number `rank` of the list.
    [[nodiscard]] Rendezvous rank_of(std::uint32_t rank, const std::vector<std::optional<crypto::TenantKey>>& keys) {
        return {store_, {.prefix = "job", .rank = rank, .world = static_cast<std::uint32_t>(keys.size())}, keys[rank]};
    }
    // All ranks announce, then all of them collect: returns their outcomes.
    std::vector<std::string> texts_of(const std::vector<std::optional<crypto::TenantKey>>& keys) {
        std::vector<Rendezvous> ranks;
        for (std::uint32_t rank = 0; rank < keys.size(); ++rank) {
            ranks.push_back(rank_of(rank, keys));
            EXPECT_TRUE(ranks.back().announce("facts", "of " + std::to_string(rank)));
        }
        std::vector<std::string> texts;
        for (Rendezvous& rank : ranks) {
            const auto values = rank.collect("facts", rank.party().ranks(), longest_wait());
            EXPECT_TRUE(values || values.error().reason == Reason::mismatched) << error_of(values);
            texts.push_back(values ? "" : values.error().text);
        }
        return texts;
    }

    MemoryStore store_;
    crypto::TenantKey key_ = key_of(7);
};

TEST_F(SealedRounds, RanksWithOneKeyReadEachOther) { EXPECT_EQ(texts_of({key_, key_, key_}), Values(3)); }

TEST_F(SealedRounds, H95_RankWithAnotherOrWithoutAKeyIsNamedOnAllRanks) {
    const std::string all = ": give all ranks the same key file (ATP_KEY_FILE)";
    EXPECT_EQ(texts_of({key_, std::nullopt, key_}), Values(3, "rank 1 has no key, the others key 7" + all));
    EXPECT_TRUE(store_.remove("job"));
    EXPECT_EQ(texts_of({std::nullopt, std::nullopt, key_}), Values(3, "rank 2 has key 7, the others no key" + all));
    EXPECT_TRUE(store_.remove("job"));
    EXPECT_EQ(texts_of({key_, key_, key_of(8)}), Values(3, "rank 2 has key 8, the others key 7" + all));
    EXPECT_TRUE(store_.remove("job"));
    EXPECT_EQ(texts_of({key_, std::nullopt}), Values(2, "rank 1 has no key, rank 0 key 7" + all));
}

TEST_F(SealedRounds, OtherKeyOfTheSameIdIsFoundByTheRanksThatItDoesNotOpen) {
    const std::string text =
        "rank 2 left a value that does not open: give all ranks the same key file (ATP_KEY_FILE), and let nothing else "
        "write to their store";
    EXPECT_EQ(texts_of({key_, key_, key_of(7)}), Values(3, text));
}

// It fails before the others come, and leaves its reason in their places.
TEST_F(SealedRounds, RankWithoutAKeyThatGivesUpFirstIsNamed) {
    Rendezvous zero = rank_of(0, {key_, key_, std::nullopt});
    Rendezvous two = rank_of(2, {key_, key_, std::nullopt});
    constexpr std::array<std::string_view, 1> rounds{"facts"};
    ASSERT_FALSE(two.collect("facts", {0, 1, 2}, net::now()));
    two.give_up({.operation = Operation::open, .reason = Reason::denied, .text = "its key file"}, rounds);
    const auto values = zero.all_gather("facts", "", longest_wait());
    ASSERT_FALSE(values);
    EXPECT_EQ(values.error().peer, "rank 2");
    EXPECT_FALSE(zero.given_up()) << "whoever can write to the store could have left it";
}

TEST_F(SealedRounds, RankThatGivesUpTellsTheOthersWhy) {
    Rendezvous zero = rank_of(0, {key_, key_});
    Rendezvous one = rank_of(1, {key_, key_});
    constexpr std::array<std::string_view, 2> rounds{"facts", "plan"};
    one.give_up({.operation = Operation::join, .reason = Reason::rejected, .text = "it is full"}, rounds);
    for (const std::string_view place : {"job/0/gave-up", "job/0/facts/1", "job/0/facts/0", "job/0/plan/1"}) {
        const auto left = store_.get(place, net::now());
        ASSERT_TRUE(left) << place;
        EXPECT_EQ(crypto::key_of_sealed(*left), 7U) << place;
    }
    const auto reason = zero.given_up();
    ASSERT_TRUE(reason);
    EXPECT_EQ(reason->value().reason, Reason::rejected);
    const auto plan = zero.collect("plan", {1}, longest_wait());
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().peer, "rank 1");
    EXPECT_NE(plan.error().text.find("it is full"), std::string::npos);
}

TEST_F(SealedRounds, SecretsAreEqualBetweenRoundsAndNewInEachFormation) {
    Rendezvous zero = rank_of(0, {key_, key_});
    Rendezvous one = rank_of(1, {key_, key_});
    const auto before = zero.secret("memory", 0);
    EXPECT_EQ(before, one.secret("memory", 0));
    for (Rendezvous* const rank : {&zero, &one}) ASSERT_TRUE(rank->announce("facts", ""));
    for (Rendezvous* const rank : {&zero, &one}) ASSERT_TRUE(rank->collect("facts", {0, 1}, longest_wait()));
    const auto after = zero.secret("memory", 0);
    EXPECT_EQ(after, one.secret("memory", 0));
    EXPECT_NE(after, before);
    for (Rendezvous* const rank : {&zero, &one}) ASSERT_TRUE(rank->announce("plan", ""));
    ASSERT_TRUE(zero.collect("plan", {1}, longest_wait()));
    EXPECT_EQ(zero.secret("memory", 0), after) << "not a round of all ranks";
    EXPECT_FALSE(rank_of(0, {std::nullopt}).secret("memory", 0));
}

}  // namespace
}  // namespace atp::store
