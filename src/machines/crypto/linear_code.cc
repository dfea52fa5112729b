// SPDX-License-Identifier: Apache-2.0
#include "crypto/linear_code.h"

#include <array>
#include <bit>
#include <cassert>
#include <cstring>

namespace atp::crypto {
namespace {

constexpr std::size_t factor_bytes = 8;
constexpr std::size_t word_bytes = 4;
constexpr std::uint64_t factors_of_block = stream_block_bytes / factor_bytes;

__extension__ using Wide = __int128;
__extension__ using Natural = unsigned __int128;

std::uint64_t little_endian(const std::byte* bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

std::uint32_t big_endian(const std::byte* bytes) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return std::endian::native == std::endian::big ? word : __builtin_bswap32(word);
}

// 2^61 is 1 modulo the prime.
constexpr unsigned prime_bits = 61;

std::uint64_t reduced(std::uint64_t value) {
    const std::uint64_t rest = (value & code_prime) + (value >> prime_bits);
    return rest >= code_prime ? rest - code_prime : rest;
}

std::uint64_t reduced(Natural value) {
    while (value >> prime_bits != 0) value = (value & code_prime) + (value >> prime_bits);
    const auto rest = static_cast<std::uint64_t>(value);
    return rest == code_prime ? 0 : rest;
}

std::uint64_t reduced(Wide value) {
    if (value >= 0) return reduced(static_cast<Natural>(value));
    const std::uint64_t rest = reduced(static_cast<Natural>(-value));
    return rest == 0 ? 0 : code_prime - rest;
}

}  // namespace

void LinearCode::read(std::uint64_t first, std::size_t count, Factors& factors) const {
    assert(count <= most_words);
    std::array<std::byte, (most_words + factors_of_block) * factor_bytes> bytes;
    const std::size_t skipped = first % factors_of_block;
    const std::span used = std::span(bytes).first((skipped + count) * factor_bytes);
    stream(key_, operation_, first / factors_of_block, used);
    for (std::size_t at = 0; at < count; ++at) {
        factors.of[at] = reduced(little_endian(used.data() + (skipped + at) * factor_bytes));
    }
}

// A product has 93 bits, so their sum has at most 102.
std::uint64_t LinearCode::code(const Factors& factors, std::span<const std::byte> words, WordKind kind) {
    static_assert(most_words <= 512);
    const std::size_t count = words.size() / word_bytes;
    const std::byte* word = words.data();
    Wide sum = 0;
    if (kind == WordKind::balanced) {
        for (std::size_t at = 0; at < count; ++at, word += word_bytes) {
            const auto value = static_cast<std::int32_t>(big_endian(word));
            sum += Wide{static_cast<std::int64_t>(factors.of[at])} * value;
        }
    } else {
        for (std::size_t at = 0; at < count; ++at, word += word_bytes) {
            sum += Wide{static_cast<std::int64_t>(factors.of[at])} * std::int64_t{big_endian(word)};
        }
    }
    return reduced(sum);
}

}  // namespace atp::crypto
