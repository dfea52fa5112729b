// SPDX-License-Identifier: Apache-2.0
// Conversion of one element to a lane, and of a sum to an element, for CPUs and GPUs. Results equal those of
// tensor/tensors.h bit for bit. NaN is converted explicitly, since a GPU would return one canonical NaN.
#pragma once

#include <bit>
#include <cstdint>

#include "numeric/element_type.h"
#include "numeric/half_bits.h"
#include "numeric/host_device.h"
#include "numeric/lane.h"

namespace atp::staging {

inline constexpr std::uint32_t float_magnitude = 0x7FFFFFFF;
inline constexpr std::uint32_t float_infinity = 0x7F800000;
inline constexpr std::uint32_t float_quiet = 0x00400000;
inline constexpr std::uint64_t double_infinity = 0x7FF0000000000000;
inline constexpr std::uint64_t double_quiet = 0x0008000000000000;
inline constexpr unsigned wider_fraction_bits = 52 - 23;  // fraction bits of float64 beyond those of float32

ATP_HOST_DEVICE inline bool is_nan(std::uint32_t float_bits) { return (float_bits & float_magnitude) > float_infinity; }

// A float32 times the factor, rounded once.
ATP_HOST_DEVICE inline std::uint32_t scale_sum(std::uint32_t sum, double factor) {
    if (is_nan(sum)) return sum | float_quiet;
    return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<double>(std::bit_cast<float>(sum)) * factor));
}

// Each format converts an element to the bits of the float32 that is sent, and a sum to an element.

struct DeviceFloat32 {
    using Element = std::uint32_t;
    ATP_HOST_DEVICE static std::uint32_t to_float(Element element) { return element; }
    ATP_HOST_DEVICE static Element from_sum(std::uint32_t sum, double factor) {
        return factor == 1 ? sum : scale_sum(sum, factor);
    }
};

struct DeviceFloat64 {
    using Element = std::uint64_t;
    ATP_HOST_DEVICE static std::uint32_t to_float(Element element) {
        const std::uint64_t magnitude = element << 1U >> 1U;
        if (magnitude <= double_infinity) {
            return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(element)));
        }
        const auto sign = static_cast<std::uint32_t>(element >> 63U << 31U);
        const auto payload = static_cast<std::uint32_t>(magnitude >> wider_fraction_bits) & (float_quiet - 1);
        return sign | float_infinity | float_quiet | payload;
    }
    ATP_HOST_DEVICE static Element from_sum(std::uint32_t sum, double factor) {
        if (!is_nan(sum)) {
            return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(sum)) * factor);
        }
        const std::uint64_t sign = std::uint64_t{sum >> 31U} << 63U;
        const std::uint64_t payload = std::uint64_t{sum & (float_quiet - 1)} << wider_fraction_bits;
        return sign | double_infinity | double_quiet | payload;
    }
};

struct DeviceFloat16 {
    using Element = std::uint16_t;
    ATP_HOST_DEVICE static std::uint32_t to_float(Element element) {
        return std::bit_cast<std::uint32_t>(numeric::half::to_float(element));
    }
    ATP_HOST_DEVICE static Element from_sum(std::uint32_t sum, double factor) {
        return numeric::half::from_float(std::bit_cast<float>(scale_sum(sum, factor)));
    }
};

struct DeviceBfloat16 {
    using Element = std::uint16_t;
    ATP_HOST_DEVICE static std::uint32_t to_float(Element element) {
        return std::bit_cast<std::uint32_t>(numeric::half::bfloat_to_float(element));
    }
    ATP_HOST_DEVICE static Element from_sum(std::uint32_t sum, double factor) {
        return numeric::half::bfloat_from_float(std::bit_cast<float>(scale_sum(sum, factor)));
    }
};

// Calls `call` with the format of the type; does nothing for integers.
template <class Call>
void with_format(numeric::ElementType type, const Call& call) {
    switch (type) {
        case numeric::ElementType::float32: return call(DeviceFloat32());
        case numeric::ElementType::float64: return call(DeviceFloat64());
        case numeric::ElementType::float16: return call(DeviceFloat16());
        case numeric::ElementType::bfloat16: return call(DeviceBfloat16());
        case numeric::ElementType::int32:
        case numeric::ElementType::int64: return;
    }
}

// A big-endian lane, as in a packet. Exactly the elements that do not fit an integer become `refused_lane`.
inline constexpr std::uint32_t refused_lane =
    numeric::lane::swap_bytes(static_cast<std::uint32_t>(numeric::lane::refused));

template <class Format>
ATP_HOST_DEVICE std::uint32_t integer_lane(typename Format::Element element, float scale) {
    const auto value = std::bit_cast<float>(Format::to_float(element));
    return numeric::lane::swap_bytes(static_cast<std::uint32_t>(numeric::lane::quantise(value, scale)));
}

template <class Format>
ATP_HOST_DEVICE std::uint32_t float_lane(typename Format::Element element) {
    return numeric::lane::swap_bytes(Format::to_float(element));
}

template <class Format>
ATP_HOST_DEVICE typename Format::Element element_of(std::uint32_t lane, double factor) {
    return Format::from_sum(numeric::lane::swap_bytes(lane), factor);
}

}  // namespace atp::staging
