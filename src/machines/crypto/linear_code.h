// SPDX-License-Identifier: Apache-2.0
// Codes of integers that switches add: the sum of the codes of several senders is the code of the sum of their
// integers. docs/spec/sealing.md#codes is normative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "crypto/crypto.h"

namespace atp::crypto {

// Codes are added modulo this prime. In a field, a wrong integer goes unnoticed with one factor of 2^61; modulo a power
// of two, an error of 2^31 would with one of 2^33.
inline constexpr std::uint64_t code_prime = (std::uint64_t{1} << 61U) - 1;

// Both below code_prime, as is the result.
[[nodiscard]] constexpr std::uint64_t code_sum(std::uint64_t one, std::uint64_t other) {
    const std::uint64_t sum = one + other;
    return sum >= code_prime ? sum - code_prime : sum;
}

// What a 32-bit word of a packet stands for.
enum class WordKind : std::uint8_t {
    balanced,  // int32
    natural,   // uint32
};

// Codes of words that belong to one operation.
//
// Ownership: a value. Calling order: any. Threads: any. Failure: none.
class LinearCode {
  public:
    // Words that are read in one step.
    static constexpr std::size_t most_words = 512;
    // A word has one factor, which depends on its number.
    struct Factors {
        std::uint64_t of[most_words];
    };

    LinearCode(const SecretKey& key, std::uint64_t operation) : key_(key), operation_(operation) {}

    // The factors of words first, first + 1, ...: at most most_words.
    void read(std::uint64_t first, std::size_t count, Factors& factors) const;
    // The sum of word times factor; `words` are big-endian.
    [[nodiscard]] static std::uint64_t code(const Factors& factors, std::span<const std::byte> words, WordKind kind);

  private:
    SecretKey key_;
    std::uint64_t operation_;
};

}  // namespace atp::crypto
