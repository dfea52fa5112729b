// SPDX-License-Identifier: Apache-2.0
#include "tensor/values.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "numeric/half.h"
#include "numeric/lanes32_worker.h"
#include "tensor/span_scales.h"

namespace atp::tensor {
namespace {

using numeric::ElementType;

void load_halves(const protocol::Tensor& tensor, std::uint64_t first, std::span<float> values,
                 void (*widen)(const std::uint16_t*, std::size_t, float*)) {
    std::array<std::uint16_t, values_max> halves;
    tensor.load_native(first, std::as_writable_bytes(std::span(halves).first(values.size())));
    widen(halves.data(), values.size(), values.data());
}

// The elements of sums: a factor would come first.
struct SumsInMemory {
    explicit SumsInMemory(const protocol::NativeElements& native)
        : type(native.type), out(native.count != 0 && native.factor == 1 ? native.out : nullptr) {}

    [[nodiscard]] bool has(ElementType required) const { return out != nullptr && type == required; }
    template <class Element>
    [[nodiscard]] Element* at(std::uint64_t element) const {
        return static_cast<Element*>(out) + element;
    }

    ElementType type;
    void* out;
};

}  // namespace

const float* values_in_memory(const protocol::Tensor& tensor) {
    const protocol::NativeElements native = tensor.native();
    const bool has_floats = native.count != 0 && native.type == ElementType::float32;
    return has_floats ? static_cast<const float*>(native.in) : nullptr;
}

void load_values(const protocol::Tensor& tensor, std::uint64_t first, std::span<float> values) {
    assert(values.size() <= values_max);
    const protocol::NativeElements native = tensor.native();
    if (native.count != 0 && native.type == ElementType::float32) {
        return tensor.load_native(first, std::as_writable_bytes(values));
    }
    if (native.count != 0 && native.type == ElementType::bfloat16) {
        return load_halves(tensor, first, values, numeric::bfloats_to_floats);
    }
    if (native.count != 0 && native.type == ElementType::float16) {
        return load_halves(tensor, first, values, numeric::halves_to_floats);
    }
    std::array<std::byte, values_max * ATP_LANE_BYTES> wire;
    tensor.load_floats(first, std::span(wire).first(values.size() * ATP_LANE_BYTES));
    numeric::floats_from_wire(wire.data(), values.size(), values.data());
}

std::uint32_t largest_finite(std::span<const float> values) {
    const std::uint32_t of_all = magnitude_bits(numeric::largest_magnitude(values.data(), values.size()));
    if (of_all < infinity_bits) return of_all;
    std::uint32_t largest = 0;
    for (const float value : values) {
        const std::uint32_t bits = magnitude_bits(value);
        largest = std::max(largest, bits < infinity_bits ? bits : 0U);
    }
    return largest;
}

std::uint32_t store_values(protocol::Tensor& tensor, std::uint64_t first, std::span<const std::byte> lanes) {
    const SumsInMemory memory(tensor.native());
    std::size_t left = lanes.size() / ATP_LANE_BYTES;
    if (memory.has(ElementType::float32)) {
        return magnitude_bits(numeric::floats_from_wire(lanes.data(), left, memory.at<float>(first)));
    }
    std::array<float, values_max> sums;
    std::uint32_t largest = 0;
    while (left != 0) {
        const std::size_t count = std::min(left, values_max);
        const std::span<const std::byte> block = lanes.first(count * ATP_LANE_BYTES);
        largest = std::max(largest, magnitude_bits(numeric::floats_from_wire(block.data(), count, sums.data())));
        if (memory.has(ElementType::bfloat16)) {
            numeric::floats_to_bfloats(sums.data(), count, memory.at<std::uint16_t>(first));
        } else if (memory.has(ElementType::float16)) {
            numeric::floats_to_halves(sums.data(), count, memory.at<std::uint16_t>(first));
        } else {
            tensor.store(first, block);
        }
        lanes = lanes.subspan(block.size());
        first += count;
        left -= count;
    }
    return largest;
}

}  // namespace atp::tensor
