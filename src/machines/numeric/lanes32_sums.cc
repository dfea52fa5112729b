// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set, see lane_vectors-inl.h. The last lines select the instruction
// set at run time.
#include "numeric/lanes32_sums.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/lanes32_sums.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "numeric/lane_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

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
HWY_EXPORT(sums_assign);
HWY_EXPORT(sums_add);
HWY_EXPORT(sums_to_floats);
HWY_EXPORT(lanes_to_floats);
HWY_EXPORT(sums_to_integers);
}  // namespace

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

// Floats are rare, and their exact sums cost more than these loops.
void sums_add_floats(const std::byte* wire_floats, std::size_t count, float scale, std::int64_t* sums) {
    for (std::size_t at = 0; at < count; ++at) {
        const auto value = std::bit_cast<float>(lane::load(wire_floats + 4 * at));
        const std::int32_t integer = lane::quantise(value, scale);
        sums[at] = integer == lane::refused || sums[at] == no_sum ? no_sum : sums[at] + integer;
    }
}

void known_sums_to_floats(const std::int64_t* sums, std::size_t count, double inverse_scale, std::byte* wire) {
    for (std::size_t at = 0; at < count; ++at) {
        if (sums[at] != no_sum) lane::store(lane::sum_to_float(sums[at], inverse_scale), wire + 4 * at);
    }
}

}  // namespace atp::numeric
#endif
