// SPDX-License-Identifier: Apache-2.0
// This file is compiled for every vector instruction set, see lane_vectors-inl.h. The last lines select the instruction
// set at run time.
#include "numeric/lanes32_switch.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/lanes32_switch.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "numeric/lane_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace atp::numeric::HWY_NAMESPACE {

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

// ------------------------------------------------------------------------------- Entry points of this instruction set

void lanes_store(const std::byte* wire, std::size_t count, std::int32_t* lanes) {
    run32(StoreLanes<std::int32_t>{wire, lanes}, count);
}
bool lanes_add(const std::byte* wire, std::size_t count, std::int32_t* lanes) { return run32(Add{wire, lanes}, count); }
bool lanes_add_emit(std::byte* wire, std::size_t count, std::int32_t* lanes) {
    return run32(AddEmit{wire, lanes}, count);
}
void lanes_emit(const std::int32_t* lanes, std::size_t count, std::byte* wire) {
    run32(Emit<std::int32_t>{lanes, wire}, count);
}

}  // namespace atp::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace atp::numeric {

namespace {
HWY_EXPORT(lanes_store);
HWY_EXPORT(lanes_add);
HWY_EXPORT(lanes_add_emit);
HWY_EXPORT(lanes_emit);
}  // namespace

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

}  // namespace atp::numeric
#endif
