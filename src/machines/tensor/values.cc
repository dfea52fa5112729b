// SPDX-License-Identifier: Apache-2.0
#include "tensor/values.h"

#include <array>
#include <cassert>

#include "numeric/half.h"
#include "numeric/lanes32_worker.h"

namespace atp::tensor {
namespace {

using numeric::ElementType;

void load_halves(const protocol::Tensor& tensor, std::uint64_t first, std::span<float> values,
                 void (*widen)(const std::uint16_t*, std::size_t, float*)) {
    std::array<std::uint16_t, values_max> halves;
    tensor.load_native(first, std::as_writable_bytes(std::span(halves).first(values.size())));
    widen(halves.data(), values.size(), values.data());
}

}  // namespace

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

void store_values(protocol::Tensor& tensor, std::uint64_t first, std::span<const float> sums,
                  std::span<const std::byte> lanes) {
    const protocol::NativeElements native = tensor.native();
    if (native.count != 0 && native.type == ElementType::float32 && native.factor == 1) {
        return tensor.store_native(first, std::as_bytes(sums));
    }
    tensor.store(first, lanes);
}

}  // namespace atp::tensor
