// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set, see lane_vectors-inl.h. The last lines select the instruction
// set at run time.
#include "numeric/rank_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

#include "numeric/exact_sum.h"
#include "numeric/half.h"
#include "numeric/half_bits.h"
#include "numeric/lanes32_sums.h"
#include "numeric/lanes32_worker.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/rank_sums.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "numeric/lane_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

// Where a kernel finds the float32 bits of a rank's element.

struct WireSource {
    static std::uint32_t single(const std::byte* rank, std::size_t at) { return lane::load(rank + 4 * at); }
#if ATP_NUMERIC_VECTORS
    template <class D>
    static HWY_INLINE Vector<D> vector(D d, const std::byte* rank, std::size_t at) {
        return load_wire(d, rank + 4 * at);
    }
#endif
};

template <class Element>
Element element_at(const std::byte* rank, std::size_t at) {
    Element element;
    std::memcpy(&element, rank + at * sizeof element, sizeof element);
    return element;
}

struct FloatSource {
    static std::uint32_t single(const std::byte* rank, std::size_t at) { return element_at<std::uint32_t>(rank, at); }
#if ATP_NUMERIC_VECTORS
    template <class D>
    static HWY_INLINE Vector<D> vector(D d, const std::byte* rank, std::size_t at) {
        return hn::LoadU(d, reinterpret_cast<const std::int32_t*>(rank) + at);
    }
#endif
};

#if ATP_NUMERIC_VECTORS
// 16 bits each, in the lower halves of the elements.
template <class D>
HWY_INLINE Vector<D> vector_of_halves(D d, const std::byte* rank, std::size_t at) {
    const hn::Rebind<std::uint16_t, D> narrow;
    return hn::PromoteTo(d, hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(rank) + at));
}
#endif

struct BfloatSource {
    static std::uint32_t single(const std::byte* rank, std::size_t at) {
        return std::uint32_t{element_at<std::uint16_t>(rank, at)} << 16U;
    }
#if ATP_NUMERIC_VECTORS
    template <class D>
    static HWY_INLINE Vector<D> vector(D d, const std::byte* rank, std::size_t at) {
        return hn::ShiftLeft<16>(vector_of_halves(d, rank, at));
    }
#endif
};

// The steps of half::to_float().
struct HalfSource {
    static std::uint32_t single(const std::byte* rank, std::size_t at) {
        return std::bit_cast<std::uint32_t>(half::to_float(element_at<std::uint16_t>(rank, at)));
    }
#if ATP_NUMERIC_VECTORS
    template <class D>
    static HWY_INLINE Vector<D> vector(D d, const std::byte* rank, std::size_t at) {
        const hn::RebindToFloat<D> floats;
        const auto bits = vector_of_halves(d, rank, at);
        const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFF));
        const auto rebias = hn::Set(d, half::rebias);
        const auto normal = hn::Add(hn::ShiftLeft<half::dropped_bits>(magnitude), rebias);
        const auto subnormal = hn::BitCast(d, hn::Mul(hn::ConvertTo(floats, magnitude), hn::Set(floats, 0x1p-24F)));
        const auto is_finite = hn::Lt(magnitude, hn::Set(d, half::half_infinity));
        const auto is_subnormal = hn::Lt(magnitude, hn::Set(d, half::half_least_normal));
        const auto large = hn::IfThenElse(is_finite, normal, hn::Add(normal, rebias));
        return hn::Or(hn::IfThenElse(is_subnormal, subnormal, large), hn::ShiftLeft<16>(hn::Xor(bits, magnitude)));
    }
#endif
};

// Where it writes a sum.

struct IntegerTarget {
    static void single(std::int64_t sum, double /*inverse_scale*/, std::byte* sums, std::size_t at) {
        lane::store(static_cast<std::uint32_t>(sum), sums + 4 * at);
    }
#if ATP_NUMERIC_VECTORS
    template <class D>
    static HWY_INLINE void vector(D d, Vector<D> sum, double /*inverse_scale*/, std::byte* sums, std::size_t at) {
        store_wire(d, sum, sums + 4 * at);
    }
#endif
};

#if ATP_NUMERIC_VECTORS
// The bits of float32(double(sum) * inverse_scale).
template <class D>
HWY_INLINE Vector<D> vector_of_floats(D d, Vector<D> sum, double inverse_scale) {
    const hn::RebindToFloat<D> floats;
    const hn::Half<D> half;
    const hn::Rebind<double, decltype(half)> doubles;
    const hn::Rebind<float, decltype(doubles)> narrow;
    const auto inverse = hn::Set(doubles, inverse_scale);
    const auto low = hn::DemoteTo(narrow, hn::Mul(hn::PromoteTo(doubles, hn::LowerHalf(half, sum)), inverse));
    const auto high = hn::DemoteTo(narrow, hn::Mul(hn::PromoteTo(doubles, hn::UpperHalf(half, sum)), inverse));
    return hn::BitCast(d, hn::Combine(floats, high, low));
}
#endif

struct WireTarget {
    static void single(std::int64_t sum, double inverse_scale, std::byte* sums, std::size_t at) {
        lane::store(lane::sum_to_float(sum, inverse_scale), sums + 4 * at);
    }
#if ATP_NUMERIC_VECTORS
    template <class D>
    static HWY_INLINE void vector(D d, Vector<D> sum, double inverse_scale, std::byte* sums, std::size_t at) {
        store_wire(d, vector_of_floats(d, sum, inverse_scale), sums + 4 * at);
    }
#endif
};

struct FloatTarget {
    static void single(std::int64_t sum, double inverse_scale, std::byte* sums, std::size_t at) {
        const std::uint32_t bits = lane::sum_to_float(sum, inverse_scale);
        std::memcpy(sums + 4 * at, &bits, sizeof bits);
    }
#if ATP_NUMERIC_VECTORS
    template <class D>
    static HWY_INLINE void vector(D d, Vector<D> sum, double inverse_scale, std::byte* sums, std::size_t at) {
        hn::StoreU(vector_of_floats(d, sum, inverse_scale), d, reinterpret_cast<std::int32_t*>(sums) + at);
    }
#endif
};

// Sums in 32 bits. Reports a product that reaches the limit; the sums are then wrong.
template <class Source, class Target>
struct SumFloats {
    std::span<const std::byte* const> ranks;
    std::size_t first;
    lane::FloatScale numbers;
    std::byte* sums;  // of element `first` and later ones

    bool single(std::size_t at) const {
        std::int64_t sum = 0;
        bool refused = false;
        for (const std::byte* rank : ranks) {
            const float product = std::bit_cast<float>(Source::single(rank, first + at)) * numbers.scale;
            refused |= std::bit_cast<std::int32_t>(std::fabs(product)) >= numbers.limit_bits;
            sum += refused ? 0 : static_cast<std::int32_t>(std::nearbyint(product));
        }
        Target::single(sum, numbers.inverse_scale, sums, at);
        return refused;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::RebindToFloat<D> floats;
        const auto factor = hn::Set(floats, numbers.scale);
        auto largest = hn::Zero(d);
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            auto sum = hn::Zero(d);
            for (const std::byte* rank : ranks) {
                const auto product = hn::Mul(hn::BitCast(floats, Source::vector(d, rank, first + at)), factor);
                largest = hn::Max(largest, hn::BitCast(d, hn::Abs(product)));
                sum = hn::Add(sum, hn::NearestInt(product));
            }
            Target::vector(d, sum, numbers.inverse_scale, sums, at);
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

using Ranks = std::span<const std::byte* const>;

bool sum_floats(Ranks ranks, std::size_t first, std::size_t count, const lane::FloatScale& numbers, std::byte* sums) {
    return run32(SumFloats<WireSource, WireTarget>{ranks, first, numbers, sums}, count);
}
bool sum_scaled(Ranks ranks, std::size_t first, std::size_t count, const lane::FloatScale& numbers, std::byte* sums) {
    return run32(SumFloats<WireSource, IntegerTarget>{ranks, first, numbers, sums}, count);
}
bool sum_native_floats(Ranks ranks, std::size_t first, std::size_t count, const lane::FloatScale& numbers,
                       std::byte* sums) {
    return run32(SumFloats<FloatSource, FloatTarget>{ranks, first, numbers, sums}, count);
}
bool sum_bfloats(Ranks ranks, std::size_t first, std::size_t count, const lane::FloatScale& numbers, std::byte* sums) {
    return run32(SumFloats<BfloatSource, FloatTarget>{ranks, first, numbers, sums}, count);
}
bool sum_halves(Ranks ranks, std::size_t first, std::size_t count, const lane::FloatScale& numbers, std::byte* sums) {
    return run32(SumFloats<HalfSource, FloatTarget>{ranks, first, numbers, sums}, count);
}
// Compilers vectorise this loop. The elements may be the sums.
void multiply(const float* sums, std::size_t count, double factor, float* elements) {
    for (std::size_t at = 0; at < count; ++at) elements[at] = static_cast<float>(double{sums[at]} * factor);
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
HWY_EXPORT(sum_native_floats);
HWY_EXPORT(sum_bfloats);
HWY_EXPORT(sum_halves);
HWY_EXPORT(multiply);
HWY_EXPORT(sum_integers);
HWY_EXPORT(sum_wide);

using Ranks = std::span<const std::byte* const>;

// Lanes that one large number sends the long way.
constexpr std::size_t block = 256;

// At most one block. `ranks` and `wire`: of its first element.
void sum_large_floats(Ranks ranks, std::size_t count, double scale, std::byte* wire) {
    std::array<std::int64_t, block> sums{};
    for (const std::byte* rank : ranks) sums_add_floats(rank, count, static_cast<float>(scale), sums.data());
    const auto end = sums.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::find(sums.begin(), end, no_sum) != end) {
        std::array<ExactLane, block> exact{};
        for (const std::byte* rank : ranks) exact_add(rank, count, exact.data());
        exact_round(exact.data(), count, wire);
    }
    known_sums_to_floats(sums.data(), count, 1 / scale, wire);
}

// At most one block.
void scale_large_floats(Ranks ranks, std::size_t count, double scale, std::byte* wire) {
    constexpr std::int64_t most = -(std::int64_t{lane::refused} + 1);
    std::array<std::int64_t, block> sums{};
    for (const std::byte* rank : ranks) sums_add_floats(rank, count, static_cast<float>(scale), sums.data());
    for (std::size_t at = 0; at < count; ++at) {
        const bool fits = sums[at] >= -most && sums[at] <= most;  // `no_sum` does not
        const auto integer = fits ? static_cast<std::int32_t>(sums[at]) : lane::refused;
        lane::store(static_cast<std::uint32_t>(integer), wire + 4 * at);
    }
}

// Writes one block of a rank as lanes.
using ToWire = void (*)(const std::byte* elements, std::size_t count, std::byte* wire);

void wire_of_floats(const std::byte* elements, std::size_t count, std::byte* wire) {
    floats_to_wire(reinterpret_cast<const float*>(elements), count, wire);
}
template <void (*widen)(const std::uint16_t*, std::size_t, float*)>
void wire_of_halves(const std::byte* elements, std::size_t count, std::byte* wire) {
    std::array<float, block> floats;
    widen(reinterpret_cast<const std::uint16_t*>(elements), count, floats.data());
    floats_to_wire(floats.data(), count, wire);
}

// At most one block of native elements; `sums` are float32 in the byte order of the host.
void sum_large_natives(Ranks ranks, std::size_t count, double scale, ToWire to_wire, float* sums) {
    constexpr std::size_t bytes = 4 * block;
    std::vector<std::byte> lanes(bytes * (ranks.size() + 1));
    std::vector<const std::byte*> places;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        std::byte* const place = &lanes[bytes * rank];
        to_wire(ranks[rank], count, place);
        places.push_back(place);
    }
    std::byte* const wire = &lanes[bytes * ranks.size()];
    sum_large_floats(places, count, scale, wire);
    floats_from_wire(wire, count, sums);
}

lane::FloatScale scale_for(Ranks ranks, double scale) {
    const float limit = lane::refused_magnitude / static_cast<float>(std::bit_ceil(ranks.size()));
    return {static_cast<float>(scale), 1 / scale, std::bit_cast<std::int32_t>(limit)};
}

// `ranks` from element `first` of `bytes` bytes on.
std::vector<const std::byte*> places_of(Ranks ranks, std::size_t first, std::size_t bytes) {
    std::vector<const std::byte*> places(ranks.begin(), ranks.end());
    for (const std::byte*& place : places) place += first * bytes;
    return places;
}

// `visit` gets each block of sums while it is in the cache.
template <class Kernel, class Exact, class Visit>
void sum_in_blocks(Ranks ranks, std::size_t count, double scale, std::byte* wire, const Kernel& kernel,
                   const Exact& exact, const Visit& visit) {
    const lane::FloatScale numbers = scale_for(ranks, scale);
    for (std::size_t first = 0; first < count; first += block) {
        const std::size_t part = std::min(block, count - first);
        std::byte* const sums = wire + 4 * first;
        if (kernel(ranks, first, part, numbers, sums)) exact(places_of(ranks, first, 4), part, scale, sums);
        visit(sums, part);
    }
}

// NaN is larger than any number.
float larger(float a, float b) { return b <= a || std::isnan(a) ? a : b; }

// `kernel` writes float32 sums, and `narrow` their elements. float32 elements need no `narrow`: nullptr.
template <class Kernel>
float sum_natives(const NativeSum& sum, const Kernel& kernel, ToWire to_wire,
                  void (*narrow)(const float*, std::size_t, std::uint16_t*), Ranks ranks, std::size_t count,
                  std::byte* elements) {
    const std::size_t bytes = bytes_of(sum.type);
    const lane::FloatScale numbers = scale_for(ranks, sum.scale);
    std::array<float, block> floats;
    float largest = 0;
    for (std::size_t first = 0; first < count; first += block) {
        const std::size_t part = std::min(block, count - first);
        std::byte* const place = elements + first * bytes;
        float* const sums = narrow != nullptr ? floats.data() : reinterpret_cast<float*>(place);
        if (kernel(ranks, first, part, numbers, reinterpret_cast<std::byte*>(sums))) {
            sum_large_natives(places_of(ranks, first, bytes), part, sum.scale, to_wire, sums);
        }
        largest = larger(largest, largest_magnitude(sums, part));
        if (sum.factor != 1) HWY_DYNAMIC_DISPATCH(multiply)(sums, part, sum.factor, sums);
        if (narrow != nullptr) narrow(sums, part, reinterpret_cast<std::uint16_t*>(place));
    }
    return largest;
}

}  // namespace

float sum_float_ranks(Ranks ranks, std::size_t count, double scale, std::byte* wire) {
    float largest = 0;
    std::array<float, block> floats;
    sum_in_blocks(ranks, count, scale, wire, HWY_DYNAMIC_DISPATCH(sum_floats), sum_large_floats,
                  [&](const std::byte* sums, std::size_t part) {
                      largest = larger(largest, floats_from_wire(sums, part, floats.data()));
                  });
    return largest;
}

void scale_and_sum_ranks(Ranks ranks, std::size_t count, double scale, std::byte* wire) {
    sum_in_blocks(ranks, count, scale, wire, HWY_DYNAMIC_DISPATCH(sum_scaled), scale_large_floats,
                  [](const std::byte* /*sums*/, std::size_t /*part*/) {});
}

void sum_integer_ranks(Ranks ranks, std::size_t count, std::byte* wire) {
    HWY_DYNAMIC_DISPATCH(sum_integers)(ranks, count, wire);
}

float sum_native_ranks(const NativeSum& sum, Ranks ranks, std::size_t count, std::byte* sums) {
    switch (sum.type) {
        case ElementType::float32:
            return sum_natives(sum, HWY_DYNAMIC_DISPATCH(sum_native_floats), wire_of_floats, nullptr, ranks, count,
                               sums);
        case ElementType::float16:
            return sum_natives(sum, HWY_DYNAMIC_DISPATCH(sum_halves), wire_of_halves<halves_to_floats>,
                               floats_to_halves, ranks, count, sums);
        case ElementType::bfloat16:
            return sum_natives(sum, HWY_DYNAMIC_DISPATCH(sum_bfloats), wire_of_halves<bfloats_to_floats>,
                               floats_to_bfloats, ranks, count, sums);
        case ElementType::int64: HWY_DYNAMIC_DISPATCH(sum_wide)(ranks, count, sums); return 0;
        case ElementType::float64:
        case ElementType::int32: break;
    }
    assert(false);
    return 0;
}

}  // namespace atp::numeric
#endif
