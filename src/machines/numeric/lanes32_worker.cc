// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set, see lane_vectors-inl.h. The last lines select the instruction
// set at run time.
#include "numeric/lanes32_worker.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/lanes32_worker.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "numeric/lane_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

struct Quantise {
    const float* values;
    float scale;
    std::byte* wire;

    bool single(std::size_t at) const { return lane::quantise(values[at], scale, wire + 4 * at); }

#if ATP_NUMERIC_VECTORS
    // Magnitudes are compared once for all lanes. As integers, the bits of floats without sign are in order, with
    // infinity and NaN at the top.
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::RebindToFloat<D> floats;
        const auto factor = hn::Set(floats, scale);
        auto largest = hn::Zero(d);
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            const auto product = hn::Mul(hn::LoadU(floats, values + at), factor);
            largest = hn::Max(largest, hn::BitCast(d, hn::Abs(product)));
            store_wire(d, hn::NearestInt(product), wire + 4 * at);
        }
        return !hn::AllFalse(d, hn::Gt(largest, hn::Set(d, lane::refused_magnitude_bits - 1)));
    }
#endif
};

struct Dequantise {
    const std::byte* wire;
    float inverse_scale;
    float* values;

    bool single(std::size_t at) const {
        values[at] = lane::dequantise(wire + 4 * at, inverse_scale);
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::RebindToFloat<D> floats;
        const auto factor = hn::Set(floats, inverse_scale);
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            const auto integers = load_wire(d, wire + 4 * at);
            hn::StoreU(hn::Mul(hn::ConvertTo(floats, integers), factor), floats, values + at);
        }
        return false;
    }
#endif
};

// As integers, the bits of floats without sign are in order, with infinity and NaN at the top.
struct TakeFloats {
    static constexpr std::int32_t magnitude = 0x7FFFFFFF;

    const std::byte* wire;
    float* values;
    std::int32_t* largest;  // of the values that were taken, as bits

    bool single(std::size_t at) const {
        const auto bits = static_cast<std::int32_t>(lane::load(wire + 4 * at));
        std::memcpy(values + at, &bits, sizeof bits);
        *largest = std::max(*largest, bits & magnitude);
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::RebindToFloat<D> floats;
        const std::size_t step = hn::Lanes(d);
        if (at + step > count) return false;
        auto most = hn::Zero(d);
        for (; at + step <= count; at += step) {
            const auto bits = load_wire(d, wire + 4 * at);
            hn::StoreU(hn::BitCast(floats, bits), floats, values + at);
            most = hn::Max(most, hn::And(bits, hn::Set(d, magnitude)));
        }
        *largest = std::max(*largest, hn::GetLane(hn::MaxOfLanes(d, most)));
        return false;
    }
#endif
};

struct Exceeds {
    const std::byte* wire;
    std::int32_t magnitude;

    bool single(std::size_t at) const {
        const auto value = static_cast<std::int32_t>(lane::load(wire + 4 * at));
        return value > magnitude || value < -magnitude;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        auto largest = hn::Zero(d);
        auto smallest = largest;
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            const auto integers = load_wire(d, wire + 4 * at);
            largest = hn::Max(largest, integers);
            smallest = hn::Min(smallest, integers);
        }
        const auto above = hn::Gt(largest, hn::Set(d, magnitude));
        return !hn::AllFalse(d, hn::Or(above, hn::Lt(smallest, hn::Set(d, -magnitude))));
    }
#endif
};

// ------------------------------------------------------------------------------- Entry points of this instruction set

bool quantise(const float* values, std::size_t count, float scale, std::byte* wire) {
    return !run32(Quantise{values, scale, wire}, count);
}
bool exceeds(const std::byte* wire, std::size_t count, std::uint32_t magnitude) {
    return run32(Exceeds{wire, static_cast<std::int32_t>(magnitude)}, count);
}
void dequantise(const std::byte* wire, std::size_t count, float inverse_scale, float* values) {
    run32(Dequantise{wire, inverse_scale, values}, count);
}
// Compilers vectorise this loop.
float largest_magnitude(const float* values, std::size_t count) {
    constexpr std::uint32_t sign = 1U << 31U;
    std::int32_t largest = 0;
    for (std::size_t at = 0; at < count; ++at) {
        std::uint32_t bits;
        std::memcpy(&bits, values + at, sizeof bits);
        largest = std::max(largest, static_cast<std::int32_t>(bits & ~sign));
    }
    float magnitude;
    std::memcpy(&magnitude, &largest, sizeof magnitude);
    return magnitude;
}
void floats_to_wire(const float* values, std::size_t count, std::byte* wire) {
    run32(Emit<float>{values, wire}, count);
}
float floats_from_wire(const std::byte* wire, std::size_t count, float* values) {
    std::int32_t largest = 0;
    run32(TakeFloats{wire, values, &largest}, count);
    float found;
    std::memcpy(&found, &largest, sizeof found);
    return found;
}

}  // namespace atp::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace atp::numeric {

namespace {
HWY_EXPORT(quantise);
HWY_EXPORT(exceeds);
HWY_EXPORT(dequantise);
HWY_EXPORT(largest_magnitude);
HWY_EXPORT(floats_to_wire);
HWY_EXPORT(floats_from_wire);
}  // namespace

bool quantise(const float* values, std::size_t count, float scale, std::byte* wire) {
    return HWY_DYNAMIC_DISPATCH(quantise)(values, count, scale, wire);
}
bool exceeds(const std::byte* wire, std::size_t count, std::uint32_t magnitude) {
    return HWY_DYNAMIC_DISPATCH(exceeds)(wire, count, magnitude);
}
void dequantise(const std::byte* wire, std::size_t count, float inverse_scale, float* values) {
    HWY_DYNAMIC_DISPATCH(dequantise)(wire, count, inverse_scale, values);
}
float largest_magnitude(const float* values, std::size_t count) {
    return HWY_DYNAMIC_DISPATCH(largest_magnitude)(values, count);
}
void floats_to_wire(const float* values, std::size_t count, std::byte* wire) {
    HWY_DYNAMIC_DISPATCH(floats_to_wire)(values, count, wire);
}
float floats_from_wire(const std::byte* wire, std::size_t count, float* values) {
    return HWY_DYNAMIC_DISPATCH(floats_from_wire)(wire, count, values);
}

}  // namespace atp::numeric
#endif
