// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace atp {

// A key that only this process knows.
using Secret = std::array<std::uint64_t, 2>;

// SipHash-2-4 (Aumasson and Bernstein): a message authentication code of 64 bits. Without the key, no host can compute
// the code of a message that the owner of the key has not computed.
[[nodiscard]] std::uint64_t siphash(const Secret& secret, std::span<const std::byte> message);

class SipHash {
  public:
    constexpr explicit SipHash(const Secret& secret)
        : v0_(secret[0] ^ 0x736f6d6570736575U),
          v1_(secret[1] ^ 0x646f72616e646f6dU),
          v2_(secret[0] ^ 0x6c7967656e657261U),
          v3_(secret[1] ^ 0x7465646279746573U) {}
    // 8 bytes of the message, the first in the lowest bits.
    constexpr void add(std::uint64_t word) {
        v3_ ^= word;
        round(), round();
        v0_ ^= word;
    }
    // `last`: the up to 7 bytes that are left, and the length of the message in the highest byte.
    [[nodiscard]] constexpr std::uint64_t finish(std::uint64_t last) {
        add(last);
        v2_ ^= 0xFF;
        for (int i = 0; i < 4; ++i) round();
        return v0_ ^ v1_ ^ v2_ ^ v3_;
    }

  private:
    constexpr void round() {
        v0_ += v1_, v1_ = std::rotl(v1_, 13) ^ v0_, v0_ = std::rotl(v0_, 32);
        v2_ += v3_, v3_ = std::rotl(v3_, 16) ^ v2_;
        v0_ += v3_, v3_ = std::rotl(v3_, 21) ^ v0_;
        v2_ += v1_, v1_ = std::rotl(v1_, 17) ^ v2_, v2_ = std::rotl(v2_, 32);
    }

    std::uint64_t v0_;
    std::uint64_t v1_;
    std::uint64_t v2_;
    std::uint64_t v3_;
};

// A number that nobody without the secret can compute, and that does not give the secret away.
[[nodiscard]] constexpr std::uint64_t number_of_secret(const Secret& secret) { return SipHash(secret).finish(0); }

}  // namespace atp
