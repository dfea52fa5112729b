// SPDX-License-Identifier: Apache-2.0
#include "crypto/formation_seal.h"

#include <gtest/gtest.h>

#include <vector>

#include "hex.h"

namespace atp::crypto {
namespace {

constexpr std::string_view facts_0 = "atp/0/facts/0";
constexpr std::string_view shared_0 = "atp/0/shared/0";
constexpr std::string_view formation = "atp/0";

TenantKey key_with(std::uint32_t id, unsigned first = 0) {
    return {.id = id, .tenant = "t", .at_switch = {}, .key = counting_key(first)};
}

Nonce nonce_of(unsigned first) {
    Nonce nonce{};
    for (std::size_t at = 0; at < nonce.size(); ++at) nonce[at] = static_cast<std::byte>(first + at);
    return nonce;
}

TEST(FormationSeal, ValueOpensWithTheKeyAtItsPlace) {
    const FormationSeal rank(key_with(7));
    const std::string sealed = rank.seal(facts_0, "address", nonce_of(1));
    EXPECT_EQ(sealed.size(), 7 + seal_overhead);
    EXPECT_EQ(sealed.find("address"), std::string::npos);
    EXPECT_EQ(key_of_sealed(sealed), 7U);
    EXPECT_EQ(FormationSeal(key_with(7)).open(facts_0, formation, sealed), "address");
    EXPECT_EQ(rank.open("atp/0/facts/1", formation, sealed), std::nullopt) << "of another rank";
    EXPECT_EQ(rank.open("atp/1/facts/0", formation, sealed), std::nullopt) << "of another attempt";
    EXPECT_EQ(rank.open("b/0/facts/0", formation, sealed), std::nullopt) << "of another communicator";
    EXPECT_EQ(FormationSeal(key_with(7, 1)).open(facts_0, formation, sealed), std::nullopt) << "another key";
    EXPECT_EQ(FormationSeal(key_with(8)).open(facts_0, formation, sealed), std::nullopt) << "another id";
}

TEST(FormationSeal, EachChangedByteIsNoticed) {
    const FormationSeal rank(key_with(7));
    const std::string sealed = rank.seal(facts_0, "address", nonce_of(1));
    for (std::size_t at = 0; at < sealed.size(); ++at) {
        std::string other = sealed;
        other[at] = static_cast<char>(other[at] ^ 1);
        EXPECT_EQ(rank.open(facts_0, formation, other), std::nullopt) << at;
    }
    for (std::size_t size = 0; size < sealed.size(); ++size) {
        EXPECT_EQ(rank.open(facts_0, formation, sealed.substr(0, size)), std::nullopt) << size;
    }
    EXPECT_EQ(rank.open(facts_0, formation, sealed + "x"), std::nullopt);
}

TEST(FormationSeal, ValueOfAnEarlierFormationDoesNotOpen) {
    FormationSeal earlier(key_with(7));
    FormationSeal later(key_with(7));
    const std::vector<std::string> first{earlier.seal(facts_0, "facts", nonce_of(1))};
    const std::vector<std::string> second{later.seal(facts_0, "facts", nonce_of(2))};
    earlier.close_round(first);
    const std::string shared = earlier.seal(shared_0, "shared", nonce_of(3));
    EXPECT_EQ(earlier.open(shared_0, formation, shared), "shared");
    EXPECT_EQ(later.open(shared_0, formation, shared), std::nullopt) << "it has read nothing yet";
    later.close_round(second);
    EXPECT_EQ(later.open(shared_0, formation, shared), std::nullopt) << "it has read other facts";
    FormationSeal same(key_with(7));
    same.close_round(first);
    EXPECT_EQ(same.open(shared_0, formation, shared), "shared");
}

TEST(FormationSeal, RoundsAreBoundInTheirOrderAndWithTheirLengths) {
    const auto transcript = [](const std::vector<std::vector<std::string>>& rounds) {
        FormationSeal rank(key_with(7));
        for (const auto& round : rounds) rank.close_round(round);
        return rank.secret("memory", 0);
    };
    EXPECT_EQ(transcript({{"a", "b"}}), transcript({{"a", "b"}}));
    EXPECT_NE(transcript({{"a", "b"}}), transcript({{"b", "a"}}));
    EXPECT_NE(transcript({{"ab", ""}}), transcript({{"a", "b"}}));
    EXPECT_NE(transcript({{"a"}}), transcript({}));
}

TEST(FormationSeal, NoticeOpensAtAnyPlaceOfItsFormation) {
    FormationSeal rank(key_with(7));
    const std::string notice = rank.seal_notice(formation, "it is full", nonce_of(1));
    FormationSeal other(key_with(7));
    other.close_round(std::vector<std::string>{"anything"});
    EXPECT_EQ(other.open(facts_0, formation, notice), "it is full");
    EXPECT_EQ(other.open(shared_0, formation, notice), "it is full");
    EXPECT_EQ(other.open(facts_0, "atp/1", notice), std::nullopt);
    // Where a value stands, a notice is none, and the other way round.
    std::string as_value = notice;
    as_value[3] = '\xFF';
    EXPECT_EQ(rank.open(formation, formation, as_value), std::nullopt);
}

TEST(FormationSeal, WhatNobodySealedIsKnown) {
    const std::string world_of_two("\0\0\0\2message of more than forty-eight bytes, as most of them are", 60);
    EXPECT_EQ(key_of_sealed(world_of_two), std::nullopt);
    EXPECT_EQ(key_of_sealed(""), std::nullopt);
    EXPECT_EQ(key_of_sealed("\xFF\xFF\xFF\xFF"), std::nullopt);
}

TEST(FormationSeal, SecretsDifferByPurposeNumberKeyAndTranscript) {
    FormationSeal rank(key_with(7));
    const Secret secret = rank.secret("memory", 3);
    EXPECT_EQ(secret, FormationSeal(key_with(7)).secret("memory", 3));
    EXPECT_NE(secret, rank.secret("memory", 4));
    EXPECT_NE(secret, rank.secret("seal", 3));
    EXPECT_NE(secret, FormationSeal(key_with(7, 1)).secret("memory", 3));
    rank.close_round(std::vector<std::string>{"anything"});
    EXPECT_NE(secret, rank.secret("memory", 3));
}

}  // namespace
}  // namespace atp::crypto
