// SPDX-License-Identifier: Apache-2.0
// Reproducible random numbers for tests, in the integer types of packet fields.
#pragma once

#include <cstdint>
#include <random>

namespace atp::testing {

class Random {
  public:
    explicit Random(std::uint32_t seed) : engine_(seed) {}

    [[nodiscard]] std::uint32_t bits() { return static_cast<std::uint32_t>(engine_()); }
    // A number in [0, count), nearly uniform.
    [[nodiscard]] std::uint32_t below(std::uint32_t count) { return bits() % count; }
    [[nodiscard]] std::uint16_t below16(std::uint32_t count) { return static_cast<std::uint16_t>(below(count)); }
    [[nodiscard]] std::int32_t number() { return static_cast<std::int32_t>(bits()); }
    [[nodiscard]] bool chance(double share) { return bits() < share * 4294967296.0; }

  private:
    std::mt19937 engine_;
};

}  // namespace atp::testing
