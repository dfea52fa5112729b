// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set, see lane_vectors-inl.h. The last lines select the instruction
// set at run time.
#include "numeric/rank_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "numeric/exact_sum.h"
#include "numeric/lanes32_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/rank_sums.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "numeric/lane_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

// Sums in 32 bits, written as integers or as floats. Reports a product that reaches the limit; the sums are then wrong.
template <bool as_integers>
struct SumFloats {
    std::span<const std::byte* const> ranks;
    std::size_t first;
    lane::FloatScale numbers;
    std::byte* wire;

    bool single(std::size_t at) const {
        std::int64_t sum = 0;
        bool refused = false;
        for (const std::byte* rank : ranks) {
            const float product = std::bit_cast<float>(lane::load(rank + 4 * (first + at))) * numbers.scale;
            refused |= std::bit_cast<std::int32_t>(std::fabs(product)) >= numbers.limit_bits;
            sum += refused ? 0 : static_cast<std::int32_t>(std::nearbyint(product));
        }
        const std::uint32_t bits =
            as_integers ? static_cast<std::uint32_t>(sum) : lane::sum_to_float(sum, numbers.inverse_scale);
        lane::store(bits, wire + 4 * (first + at));
        return refused;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::RebindToFloat<D> floats;
        const hn::Half<D> half;
        const hn::Rebind<double, decltype(half)> doubles;
        const hn::Rebind<float, decltype(doubles)> narrow;
        const auto factor = hn::Set(floats, numbers.scale);
        const auto inverse = hn::Set(doubles, numbers.inverse_scale);
        auto largest = hn::Zero(d);
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            auto sum = hn::Zero(d);
            for (const std::byte* rank : ranks) {
                const auto product = hn::Mul(hn::BitCast(floats, load_wire(d, rank + 4 * (first + at))), factor);
                largest = hn::Max(largest, hn::BitCast(d, hn::Abs(product)));
                sum = hn::Add(sum, hn::NearestInt(product));
            }
            if constexpr (as_integers) {
                store_wire(d, sum, wire + 4 * (first + at));
                continue;
            }
            const auto low = hn::DemoteTo(narrow, hn::Mul(hn::PromoteTo(doubles, hn::LowerHalf(half, sum)), inverse));
            const auto high = hn::DemoteTo(narrow, hn::Mul(hn::PromoteTo(doubles, hn::UpperHalf(half, sum)), inverse));
            store_wire(d, hn::BitCast(d, hn::Combine(floats, high, low)), wire + 4 * (first + at));
        }
        return !hn::AllFalse(d, hn::Gt(largest, hn::Set(d, numbers.limit_bits - 1)));
    }
#endif
};

struct SumIntegers {
    std::span<const std::byte* const> ranks;
    std::byte* wire;

    bool single(std::size_t at) const {
        std::uint32_t sum = 0;
        for (const std::byte* rank : ranks) sum += lane::load(rank + 4 * at);
        lane::store(sum, wire + 4 * at);
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            auto sum = hn::Zero(d);
            for (const std::byte* rank : ranks) sum = hn::Add(sum, load_wire(d, rank + 4 * at));
            store_wire(d, sum, wire + 4 * at);
        }
        return false;
    }
#endif
};

// ------------------------------------------------------------------------------- Entry points of this instruction set

bool sum_floats(std::span<const std::byte* const> ranks, std::size_t first, std::size_t count,
                const lane::FloatScale& numbers, std::byte* wire) {
    return run32(SumFloats<false>{ranks, first, numbers, wire}, count);
}
bool sum_scaled(std::span<const std::byte* const> ranks, std::size_t first, std::size_t count,
                const lane::FloatScale& numbers, std::byte* wire) {
    return run32(SumFloats<true>{ranks, first, numbers, wire}, count);
}
void sum_integers(std::span<const std::byte* const> ranks, std::size_t count, std::byte* wire) {
    run32(SumIntegers{ranks, wire}, count);
}
// Compilers vectorise these loops.
void sum_wide(std::span<const std::byte* const> ranks, std::size_t count, std::byte* sums) {
    constexpr std::size_t step = 512;
    for (std::size_t at = 0; at < count; at += step) {
        const std::size_t part = std::min(step, count - at);
        std::array<std::uint64_t, step> sum{};
        for (const std::byte* rank : ranks) {
            const auto* const integers = reinterpret_cast<const std::uint64_t*>(rank) + at;
            for (std::size_t i = 0; i < part; ++i) sum[i] += integers[i];
        }
        std::memcpy(sums + at * sizeof sum[0], sum.data(), part * sizeof sum[0]);
    }
}

}  // namespace atp::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace atp::numeric {
namespace {

HWY_EXPORT(sum_floats);
HWY_EXPORT(sum_scaled);
HWY_EXPORT(sum_integers);
HWY_EXPORT(sum_wide);

// Lanes that one large number sends the long way.
constexpr std::size_t block = 256;

// At most one block.
void sum_large_floats(std::span<const std::byte* const> ranks, std::size_t first, std::size_t count, double scale,
                      std::byte* wire) {
    std::array<std::int64_t, block> sums{};
    for (const std::byte* rank : ranks) {
        sums_add_floats(rank + 4 * first, count, static_cast<float>(scale), sums.data());
    }
    const auto end = sums.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::find(sums.begin(), end, no_sum) != end) {
        std::array<ExactLane, block> exact{};
        for (const std::byte* rank : ranks) exact_add(rank + 4 * first, count, exact.data());
        exact_round(exact.data(), count, wire + 4 * first);
    }
    known_sums_to_floats(sums.data(), count, 1 / scale, wire + 4 * first);
}

// At most one block.
void scale_large_floats(std::span<const std::byte* const> ranks, std::size_t first, std::size_t count, double scale,
                        std::byte* wire) {
    constexpr std::int64_t most = -(std::int64_t{lane::refused} + 1);
    std::array<std::int64_t, block> sums{};
    for (const std::byte* rank : ranks) {
        sums_add_floats(rank + 4 * first, count, static_cast<float>(scale), sums.data());
    }
    for (std::size_t at = 0; at < count; ++at) {
        const bool fits = sums[at] >= -most && sums[at] <= most;  // `no_sum` does not
        const auto integer = fits ? static_cast<std::int32_t>(sums[at]) : lane::refused;
        lane::store(static_cast<std::uint32_t>(integer), wire + 4 * (first + at));
    }
}

template <class Kernel, class Exact>
void sum_in_blocks(std::span<const std::byte* const> ranks, std::size_t count, double scale, std::byte* wire,
                   const Kernel& kernel, const Exact& exact) {
    const float limit = lane::refused_magnitude / static_cast<float>(std::bit_ceil(ranks.size()));
    const lane::FloatScale numbers{static_cast<float>(scale), 1 / scale, std::bit_cast<std::int32_t>(limit)};
    for (std::size_t first = 0; first < count; first += block) {
        const std::size_t part = std::min(block, count - first);
        if (kernel(ranks, first, part, numbers, wire)) exact(ranks, first, part, scale, wire);
    }
}

}  // namespace

void sum_float_ranks(std::span<const std::byte* const> ranks, std::size_t count, double scale, std::byte* wire) {
    sum_in_blocks(ranks, count, scale, wire, HWY_DYNAMIC_DISPATCH(sum_floats), sum_large_floats);
}

void scale_and_sum_ranks(std::span<const std::byte* const> ranks, std::size_t count, double scale, std::byte* wire) {
    sum_in_blocks(ranks, count, scale, wire, HWY_DYNAMIC_DISPATCH(sum_scaled), scale_large_floats);
}

void sum_wide_ranks(std::span<const std::byte* const> ranks, std::size_t count, std::byte* sums) {
    HWY_DYNAMIC_DISPATCH(sum_wide)(ranks, count, sums);
}

void sum_integer_ranks(std::span<const std::byte* const> ranks, std::size_t count, std::byte* wire) {
    HWY_DYNAMIC_DISPATCH(sum_integers)(ranks, count, wire);
}

}  // namespace atp::numeric
#endif
