// SPDX-License-Identifier: Apache-2.0
// 64-bit hashes of words and bytes: folds the 128-bit product of each word and a constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace atp::check {

__extension__ using Product = unsigned __int128;

[[nodiscard]] inline std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) {
    const Product product = static_cast<Product>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

[[nodiscard]] inline std::uint64_t hash_bytes(const void* data, std::size_t size) {
    constexpr std::uint64_t first = 0xa0761d6478bd642fU;
    constexpr std::uint64_t second = 0xe7037ed1a0b428dbU;
    std::uint64_t hash = fold_product(size ^ first, second);
    const auto* at = static_cast<const unsigned char*>(data);
    std::uint64_t word = 0;
    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        std::memcpy(&word, at, sizeof word);
        hash = fold_product(hash ^ word, first ^ (hash >> 32U));
    }
    word = 0;
    if (size != 0) std::memcpy(&word, at, size);
    return fold_product(fold_product(hash ^ word, second), first ^ hash);
}

[[nodiscard]] inline std::uint64_t hash_words(std::span<const std::uint32_t> words) {
    return hash_bytes(words.data(), words.size_bytes());
}

[[nodiscard]] inline std::uint64_t hash_word(std::uint64_t word) {
    return fold_product(word ^ 0xa0761d6478bd642fU, 0xe7037ed1a0b428dbU);
}

}  // namespace atp::check
