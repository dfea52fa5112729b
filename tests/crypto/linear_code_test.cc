// SPDX-License-Identifier: Apache-2.0
#include "crypto/linear_code.h"

#include <gtest/gtest.h>

#include <vector>

#include "hex.h"

namespace atp::crypto {
namespace {

std::vector<std::byte> words_of(std::initializer_list<std::uint32_t> words) {
    std::vector<std::byte> bytes;
    for (const std::uint32_t word : words) {
        for (unsigned at = 0; at < 4; ++at) bytes.push_back(static_cast<std::byte>(word >> 8 * (3 - at)));
    }
    return bytes;
}

class LinearCodeTest : public ::testing::Test {
  protected:
    std::uint64_t code(std::initializer_list<std::uint32_t> words, WordKind kind, std::uint64_t first = 0) {
        LinearCode::Factors factors;
        code_.read(first, words.size(), factors);
        return LinearCode::code(factors, words_of(words), kind);
    }

    LinearCode code_{counting_key(), 7};
};

TEST_F(LinearCodeTest, CodesOfSendersAddUpToTheCodeOfTheSum) {
    EXPECT_EQ(
        code_sum(code({0xFFFFFFFF, 5, 0x7FFFFFFF}, WordKind::balanced), code({3, 0xFFFFFFF0, 0}, WordKind::balanced)),
        code({2, 0xFFFFFFF5, 0x7FFFFFFF}, WordKind::balanced));
    EXPECT_EQ(code_sum(code({0xFFFFFFF0}, WordKind::natural), code({0xF}, WordKind::natural)),
              code({0xFFFFFFFF}, WordKind::natural));
}

TEST_F(LinearCodeTest, EveryBitOfEveryWordCounts) {
    for (unsigned bit = 0; bit < 32; ++bit) {
        const std::uint32_t word = std::uint32_t{1} << bit;
        for (const WordKind kind : {WordKind::balanced, WordKind::natural}) {
            EXPECT_NE(code({word, 0}, kind), 0U) << bit;
            EXPECT_NE(code({word, 0}, kind), code({0, word}, kind)) << bit;
        }
    }
    EXPECT_NE(code({0x80000000}, WordKind::balanced), code({0x80000000}, WordKind::natural));
}

TEST_F(LinearCodeTest, FactorsDependOnTheirNumberOnlyNotOnWhereReadingBegins) {
    LinearCode::Factors all;
    code_.read(0, 40, all);
    for (std::uint64_t first = 0; first < 40; ++first) {
        LinearCode::Factors some;
        code_.read(first, 40 - first, some);
        for (std::uint64_t at = first; at < 40; ++at) EXPECT_EQ(some.of[at - first], all.of[at]) << first;
    }
}

TEST_F(LinearCodeTest, OperationsAndKeysHaveOtherFactors) {
    LinearCode::Factors own;
    LinearCode::Factors later;
    LinearCode::Factors other;
    code_.read(0, 1, own);
    LinearCode(counting_key(), 8).read(0, 1, later);
    LinearCode(counting_key(1), 7).read(0, 1, other);
    EXPECT_NE(own.of[0], later.of[0]);
    EXPECT_NE(own.of[0], other.of[0]);
}

// An error of 2^31 in one word has a code modulo a power of two with few possible values. Here it has as many as any.
TEST_F(LinearCodeTest, ErrorsOfTheUpperBitAreNotConfused) {
    EXPECT_NE(code({0x80000000, 0}, WordKind::natural), code({0, 0x80000000}, WordKind::natural));
    EXPECT_LT(code({0x80000000}, WordKind::natural), code_prime);
}

TEST_F(LinearCodeTest, LongestPartsDoNotOverflow) {
    LinearCode::Factors factors;
    for (std::uint64_t& factor : factors.of) factor = code_prime - 1;
    const std::vector<std::byte> words(LinearCode::most_words * 4, std::byte{0xFF});
    // (p - 1) (2^32 - 1) 512 = -(2^32 - 1) 2^9 modulo p
    EXPECT_EQ(LinearCode::code(factors, words, WordKind::natural), code_prime - ((std::uint64_t{0xFFFFFFFF}) << 9U));
    EXPECT_EQ(LinearCode::code(factors, words, WordKind::balanced), std::uint64_t{512}) << "(p - 1) (-1) 512";
}

}  // namespace
}  // namespace atp::crypto
