// SPDX-License-Identifier: Apache-2.0
// The simulator's only source of random numbers. The distributions of the standard differ between libraries. The
// distributions here do not, so one seed gives the same run with every library.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/hash.h"

namespace atp {

// Uniform in [0, 1).
[[nodiscard]] constexpr double share_of_one(std::uint64_t random) {
    return static_cast<double>(random >> 11U) * 0x1p-53;
}

// xoshiro256** (Blackman, Vigna). Each purpose has its own stream, so an extra draw of one purpose does not change
// the others.
class Random {
  public:
    Random(std::uint64_t seed, std::uint64_t stream) {
        std::uint64_t x = mix64(seed, stream);
        for (std::uint64_t& word : state_) word = x = mix64(x);
    }

    std::uint64_t next() {
        const std::uint64_t result = std::rotl(state_[1] * 5U, 7) * 9U;
        const std::uint64_t shifted = state_[1] << 17U;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }

    // Returns 0 .. bound - 1, or 0 if `bound` is 0. The bias, bound / 2^64, is negligible for the bounds of a
    // simulation.
    std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
    // Returns first .. last, both included.
    std::uint64_t between(std::uint64_t first, std::uint64_t last) { return first + below(last - first + 1); }
    bool chance(double probability) { return share_of_one(next()) < probability; }

    template <class T, std::size_t N>
    const T& pick(const std::array<T, N>& choices) {
        return choices[below(N)];
    }

  private:
    std::array<std::uint64_t, 4> state_{};
};

// A positive quantity with a normally distributed logarithm.
struct LogNormal {
    double median = 1;
    double spread = 0;  // standard deviation of the natural logarithm

    // The value for a key, by the Box-Muller transform.
    [[nodiscard]] double draw(std::uint64_t key) const {
        const double radius = std::sqrt(-2 * std::log1p(-share_of_one(mix64(key, 1))));
        const double angle = 2 * std::numbers::pi * share_of_one(mix64(key, 2));
        return median * std::exp(spread * radius * std::cos(angle));
    }

    friend bool operator==(const LogNormal&, const LogNormal&) = default;
};

}  // namespace atp
