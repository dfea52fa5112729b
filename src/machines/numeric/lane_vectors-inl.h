// SPDX-License-Identifier: Apache-2.0
// Vector kernels that the lanes32_*.cc share: moving lanes between packets and memory.
//
// A source that includes this header is compiled for every vector instruction set of the architecture:
// hwy/foreach_target.h includes the source repeatedly. Each time, this header must be read again, so its guard toggles,
// as Highway's own do.
#if defined(ATP_NUMERIC_LANE_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATP_NUMERIC_LANE_VECTORS_INL_H
#undef ATP_NUMERIC_LANE_VECTORS_INL_H
#else
#define ATP_NUMERIC_LANE_VECTORS_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

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
    bool reported = false;
#if ATP_NUMERIC_VECTORS
    reported |= kernel.vectors(hn::CappedTag<T, widest>(), at, count);
    reported |= kernel.vectors(hn::CappedTag<T, widest / 2>(), at, count);
    reported |= kernel.vectors(hn::CappedTag<T, widest / 4>(), at, count);
#endif
    for (; at < count; ++at) {
        reported |= kernel.single(at);
    }
    return reported;
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

// Kernels. Each has single(at), which handles one lane, and vectors(), which advances `at` by whole vectors.

// Also moves floats, since it only reorders bytes.
template <typename T>
struct StoreLanes {
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

}  // namespace atp::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
