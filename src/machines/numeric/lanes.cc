// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set of the architecture: hwy/foreach_target.h includes it
// repeatedly. The last lines select one at run time.
#include "numeric/lanes.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/lanes.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "numeric/lane.h"

// Highway's emulation of vectors is slower than plain loops, and differs from hardware at the edges (ties below one
// half, doubles beyond float32). Targets without vectors therefore use lane.h for all lanes.
#undef ATP_NUMERIC_VECTORS
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
#define ATP_NUMERIC_VECTORS 0
#else
#define ATP_NUMERIC_VECTORS 1
#endif

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Runs a kernel over `count` lanes: vectors of at most `widest` elements while they fit, then halves, then quarters,
// then single lanes. Returns true if any part of the kernel returned true.
template <typename T, std::size_t widest, class Kernel>
HWY_INLINE bool run(const Kernel& kernel, std::size_t count) {
    std::size_t at = 0;
    bool said = false;
#if ATP_NUMERIC_VECTORS
    said |= kernel.vectors(hn::CappedTag<T, widest>(), at, count);
    said |= kernel.vectors(hn::CappedTag<T, widest / 2>(), at, count);
    said |= kernel.vectors(hn::CappedTag<T, widest / 4>(), at, count);
#endif
    for (; at < count; ++at) {
        said |= kernel.single(at);
    }
    return said;
}

template <class Kernel>
HWY_INLINE bool run32(const Kernel& kernel, std::size_t count) {
    return run<std::int32_t, 16>(kernel, count);
}

template <class Kernel>
HWY_INLINE bool run64(const Kernel& kernel, std::size_t count) {
    return run<std::int64_t, 8>(kernel, count);
}

#if ATP_NUMERIC_VECTORS

template <class D>
using Vector = hn::VFromD<D>;

// Big-endian bytes <-> 4-byte elements. The parameters are bytes, since the wire has no alignment.
template <class D>
HWY_INLINE hn::VFromD<hn::Repartition<std::uint8_t, D>> swap_bytes(D, hn::VFromD<hn::Repartition<std::uint8_t, D>> v) {
    const hn::Repartition<std::uint8_t, D> bytes;
    alignas(16) static constexpr std::uint8_t order[16] = {3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12};
    return hn::TableLookupBytes(v, hn::LoadDup128(bytes, order));
}

template <class D>
HWY_INLINE Vector<D> load_wire(D d, const std::byte* wire) {
    const hn::Repartition<std::uint8_t, D> bytes;
    return hn::BitCast(d, swap_bytes(d, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(wire))));
}

template <class D>
HWY_INLINE void store_wire(D d, Vector<D> v, std::byte* wire) {
    const hn::Repartition<std::uint8_t, D> bytes;
    hn::StoreU(swap_bytes(d, hn::BitCast(bytes, v)), bytes, reinterpret_cast<std::uint8_t*>(wire));
}

#endif

// ---------------------------------------------------------------------------------------------------------- Worker

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

// ---------------------------------------------------------------------------------------------------------- Switch

// Also moves floats, since it only reorders bytes.
template <typename T>
struct Store {
    const std::byte* wire;
    T* lanes;

    bool single(std::size_t at) const {
        const std::uint32_t bits = lane::load(wire + 4 * at);
        std::memcpy(lanes + at, &bits, sizeof bits);
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::Rebind<T, D> typed;
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            hn::StoreU(hn::BitCast(typed, load_wire(d, wire + 4 * at)), typed, lanes + at);
        }
        return false;
    }
#endif
};

template <typename T>
struct Emit {
    const T* lanes;
    std::byte* wire;

    bool single(std::size_t at) const {
        std::uint32_t bits;
        std::memcpy(&bits, lanes + at, sizeof bits);
        lane::store(bits, wire + 4 * at);
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::Rebind<T, D> typed;
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            store_wire(d, hn::BitCast(d, hn::LoadU(typed, lanes + at)), wire + 4 * at);
        }
        return false;
    }
#endif
};

#if ATP_NUMERIC_VECTORS

// Saturating sum. If a lane overflows, its sign bit in `overflow` is set.
template <class D>
HWY_INLINE Vector<D> add_saturating(D d, Vector<D> addend, Vector<D> lanes, Vector<D>& overflow) {
    const auto sum = hn::Add(addend, lanes);
    // Overflow: both operands have one sign, and the sum has the other.
    const auto left = hn::AndNot(hn::Xor(addend, lanes), hn::Xor(sum, lanes));
    const auto extreme = hn::Xor(hn::BroadcastSignBit(lanes), hn::Set(d, std::numeric_limits<std::int32_t>::max()));
    overflow = hn::Or(overflow, left);
    return hn::IfThenElse(hn::Lt(left, hn::Zero(d)), extreme, sum);
}

#endif

struct Add {
    const std::byte* wire;
    std::int32_t* lanes;

    bool single(std::size_t at) const {
        return lane::add(static_cast<std::int32_t>(lane::load(wire + 4 * at)), lanes[at]);
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        auto overflow = hn::Zero(d);
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            const auto addend = load_wire(d, wire + 4 * at);
            hn::StoreU(add_saturating(d, addend, hn::LoadU(d, lanes + at), overflow), d, lanes + at);
        }
        return !hn::AllFalse(d, hn::Lt(overflow, hn::Zero(d)));
    }
#endif
};

struct AddEmit {
    std::byte* wire;
    std::int32_t* lanes;

    bool single(std::size_t at) const {
        const bool overflow = lane::add(static_cast<std::int32_t>(lane::load(wire + 4 * at)), lanes[at]);
        lane::store(static_cast<std::uint32_t>(lanes[at]), wire + 4 * at);
        return overflow;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        auto overflow = hn::Zero(d);
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            const auto addend = load_wire(d, wire + 4 * at);
            const auto sum = add_saturating(d, addend, hn::LoadU(d, lanes + at), overflow);
            hn::StoreU(sum, d, lanes + at);
            store_wire(d, sum, wire + 4 * at);
        }
        return !hn::AllFalse(d, hn::Lt(overflow, hn::Zero(d)));
    }
#endif
};

// ---------------------------------------------------------------------------------------------------------- Server

struct SumsAssign {
    const std::byte* wire;
    std::int64_t* sums;

    bool single(std::size_t at) const {
        sums[at] = static_cast<std::int32_t>(lane::load(wire + 4 * at));
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::Rebind<std::int32_t, D> narrow;
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            hn::StoreU(hn::PromoteTo(d, load_wire(narrow, wire + 4 * at)), d, sums + at);
        }
        return false;
    }
#endif
};

struct SumsAdd {
    const std::byte* wire;
    std::int64_t* sums;

    bool single(std::size_t at) const {
        sums[at] += static_cast<std::int32_t>(lane::load(wire + 4 * at));
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::Rebind<std::int32_t, D> narrow;
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            const auto addend = hn::PromoteTo(d, load_wire(narrow, wire + 4 * at));
            hn::StoreU(hn::Add(hn::LoadU(d, sums + at), addend), d, sums + at);
        }
        return false;
    }
#endif
};

struct SumsToFloats {
    const std::int64_t* sums;
    double inverse_scale;
    std::byte* wire;

    bool single(std::size_t at) const {
        lane::store(lane::sum_to_float(sums[at], inverse_scale), wire + 4 * at);
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::RebindToFloat<D> doubles;
        const hn::Rebind<float, D> floats;
        const hn::Rebind<std::int32_t, D> lanes;
        const auto factor = hn::Set(doubles, inverse_scale);
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            const auto scaled = hn::Mul(hn::ConvertTo(doubles, hn::LoadU(d, sums + at)), factor);
            store_wire(lanes, hn::BitCast(lanes, hn::DemoteTo(floats, scaled)), wire + 4 * at);
        }
        return false;
    }
#endif
};

struct LanesToFloats {
    const std::byte* from;
    double inverse_scale;
    std::byte* wire;

    bool single(std::size_t at) const {
        const auto sum = static_cast<std::int32_t>(lane::load(from + 4 * at));
        lane::store(lane::sum_to_float(sum, inverse_scale), wire + 4 * at);
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::RebindToFloat<D> doubles;
        const hn::Rebind<float, D> floats;
        const hn::Rebind<std::int32_t, D> lanes;
        const auto factor = hn::Set(doubles, inverse_scale);
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            const auto scaled = hn::Mul(hn::PromoteTo(doubles, load_wire(lanes, from + 4 * at)), factor);
            store_wire(lanes, hn::BitCast(lanes, hn::DemoteTo(floats, scaled)), wire + 4 * at);
        }
        return false;
    }
#endif
};

struct SumsToIntegers {
    const std::int64_t* sums;
    std::byte* wire;

    bool single(std::size_t at) const {
        lane::store(static_cast<std::uint32_t>(sums[at]), wire + 4 * at);
        return false;
    }

#if ATP_NUMERIC_VECTORS
    template <class D>
    HWY_INLINE bool vectors(D d, std::size_t& at, std::size_t count) const {
        const hn::RebindToUnsigned<D> wide;
        const hn::Rebind<std::uint32_t, D> narrow;
        for (const std::size_t step = hn::Lanes(d); at + step <= count; at += step) {
            const auto bits = hn::BitCast(wide, hn::LoadU(d, sums + at));
            store_wire(narrow, hn::TruncateTo(narrow, bits), wire + 4 * at);
        }
        return false;
    }
#endif
};

// ------------------------------------------------------------------------------- Entry points of this instruction set

bool quantise(const float* values, std::size_t count, float scale, std::byte* wire) {
    return !run32(Quantise{values, scale, wire}, count);
}
void dequantise(const std::byte* wire, std::size_t count, float inverse_scale, float* values) {
    run32(Dequantise{wire, inverse_scale, values}, count);
}
// As integers, the bits of floats without sign are in order, with infinity and NaN at the top. Compilers vectorise
// this loop.
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
void floats_from_wire(const std::byte* wire, std::size_t count, float* values) {
    run32(Store<float>{wire, values}, count);
}
void lanes_store(const std::byte* wire, std::size_t count, std::int32_t* lanes) {
    run32(Store<std::int32_t>{wire, lanes}, count);
}
bool lanes_add(const std::byte* wire, std::size_t count, std::int32_t* lanes) { return run32(Add{wire, lanes}, count); }
bool lanes_add_emit(std::byte* wire, std::size_t count, std::int32_t* lanes) {
    return run32(AddEmit{wire, lanes}, count);
}
void lanes_emit(const std::int32_t* lanes, std::size_t count, std::byte* wire) {
    run32(Emit<std::int32_t>{lanes, wire}, count);
}
void sums_assign(const std::byte* wire, std::size_t count, std::int64_t* sums) { run64(SumsAssign{wire, sums}, count); }
void sums_add(const std::byte* wire, std::size_t count, std::int64_t* sums) { run64(SumsAdd{wire, sums}, count); }
void sums_to_floats(const std::int64_t* sums, std::size_t count, double inverse_scale, std::byte* wire) {
    run64(SumsToFloats{sums, inverse_scale, wire}, count);
}
void lanes_to_floats(const std::byte* from, std::size_t count, double inverse_scale, std::byte* wire) {
    run64(LanesToFloats{from, inverse_scale, wire}, count);
}
void sums_to_integers(const std::int64_t* sums, std::size_t count, std::byte* wire) {
    run64(SumsToIntegers{sums, wire}, count);
}

}  // namespace atp::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace atp::numeric {

namespace {
HWY_EXPORT(quantise);
HWY_EXPORT(dequantise);
HWY_EXPORT(largest_magnitude);
HWY_EXPORT(floats_to_wire);
HWY_EXPORT(floats_from_wire);
HWY_EXPORT(lanes_store);
HWY_EXPORT(lanes_add);
HWY_EXPORT(lanes_add_emit);
HWY_EXPORT(lanes_emit);
HWY_EXPORT(sums_assign);
HWY_EXPORT(sums_add);
HWY_EXPORT(sums_to_floats);
HWY_EXPORT(lanes_to_floats);
HWY_EXPORT(sums_to_integers);
}  // namespace

bool quantise(const float* values, std::size_t count, float scale, std::byte* wire) {
    return HWY_DYNAMIC_DISPATCH(quantise)(values, count, scale, wire);
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
void floats_from_wire(const std::byte* wire, std::size_t count, float* values) {
    HWY_DYNAMIC_DISPATCH(floats_from_wire)(wire, count, values);
}
void lanes_store(const std::byte* wire, std::size_t count, std::int32_t* lanes) {
    HWY_DYNAMIC_DISPATCH(lanes_store)(wire, count, lanes);
}
bool lanes_add(const std::byte* wire, std::size_t count, std::int32_t* lanes) {
    return HWY_DYNAMIC_DISPATCH(lanes_add)(wire, count, lanes);
}
bool lanes_add_emit(std::byte* wire, std::size_t count, std::int32_t* lanes) {
    return HWY_DYNAMIC_DISPATCH(lanes_add_emit)(wire, count, lanes);
}
void lanes_emit(const std::int32_t* lanes, std::size_t count, std::byte* wire) {
    HWY_DYNAMIC_DISPATCH(lanes_emit)(lanes, count, wire);
}
void sums_assign(const std::byte* wire, std::size_t count, std::int64_t* sums) {
    HWY_DYNAMIC_DISPATCH(sums_assign)(wire, count, sums);
}
void sums_add(const std::byte* wire, std::size_t count, std::int64_t* sums) {
    HWY_DYNAMIC_DISPATCH(sums_add)(wire, count, sums);
}
void sums_to_floats(const std::int64_t* sums, std::size_t count, double inverse_scale, std::byte* wire) {
    HWY_DYNAMIC_DISPATCH(sums_to_floats)(sums, count, inverse_scale, wire);
}
void lanes_to_floats(const std::byte* from, std::size_t count, double inverse_scale, std::byte* wire) {
    HWY_DYNAMIC_DISPATCH(lanes_to_floats)(from, count, inverse_scale, wire);
}
void sums_to_integers(const std::int64_t* sums, std::size_t count, std::byte* wire) {
    HWY_DYNAMIC_DISPATCH(sums_to_integers)(sums, count, wire);
}

}  // namespace atp::numeric
#endif
