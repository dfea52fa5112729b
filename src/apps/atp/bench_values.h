// SPDX-License-Identifier: Apache-2.0
// The numbers that `atp bench` sums, chosen so that every bit of a sum is known beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/options.h"
#include "numeric/element_type.h"

namespace atp::apps {

// Largest magnitude that float16 holds with all bits of the values, and the smallest one.
inline constexpr double largest_half_magnitude = 0x1p14;
inline constexpr double smallest_half_magnitude = 0x1p-6;

// Values are integers divided by one scale. They repeat after `period` elements.
//
// Threads: const calls from any thread.
class BenchValues {
  public:
    // A prime number, so that packets begin at different positions of the period.
    static constexpr std::size_t period = 4093;

    // `magnitude`: about the largest value, rounded to a power of two times an integer; 0: the usual one. It needs
    // dynamic scaling.
    BenchValues(const comm::Options& options, numeric::ElementType type, double magnitude, std::uint32_t rank,
                std::uint32_t world);

    [[nodiscard]] numeric::ElementType type() const { return type_; }
    [[nodiscard]] std::size_t element_bytes() const { return width_; }
    [[nodiscard]] std::uint32_t rank() const { return rank_; }
    [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(own_.size()); }

    // Writes the elements of `rank` from `first` on.
    void fill(std::uint32_t rank, std::size_t first, std::span<std::byte> elements) const;
    // Position of the first of these elements that is not that of `rank`, or not the sum of all ranks.
    [[nodiscard]] std::optional<std::size_t> wrong_value(std::uint32_t rank, std::size_t first,
                                                         std::span<const std::byte> elements) const;
    [[nodiscard]] std::optional<std::size_t> wrong_sum(std::size_t first, std::span<const std::byte> elements) const;

  private:
    // One period of elements, in the bytes of their type.
    using Period = std::vector<std::byte>;

    [[nodiscard]] std::optional<std::size_t> difference(const Period& expected, std::size_t first,
                                                        std::span<const std::byte> elements) const;
    // The value as the nearest element of the type.
    void append(Period& period_of, double value, std::int64_t integer) const;

    numeric::ElementType type_;
    std::size_t width_;
    std::uint32_t rank_;
    std::vector<Period> own_;  // by rank
    Period sum_;
};

}  // namespace atp::apps
