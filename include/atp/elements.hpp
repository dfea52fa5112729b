// SPDX-License-Identifier: Apache-2.0
// Types of elements and views of them, for C++17. Include atp/atp.hpp, which includes this file.
#ifndef ATP_ELEMENTS_HPP
#define ATP_ELEMENTS_HPP

#include <atp/atp.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif

namespace atp {
inline namespace v1 {

// IEEE 754 binary16. From float, it rounds to nearest, ties to even.
struct float16 {
    float16() = default;
    explicit float16(float value) {
        std::uint32_t word = 0;
        std::memcpy(&word, &value, sizeof word);
        const std::uint32_t magnitude = word & 0x7FFF'FFFFU;
        std::uint32_t result = 0x7C00;   // infinity
        if (magnitude > 0x7F80'0000U) {  // NaN: quiet, with the part of its payload that fits
            result = 0x7E00U | ((magnitude >> 13U) & 0x3FFU);
        } else if (magnitude < 0x3880'0000U) {  // subnormal: adding 0.5 moves its last bit to the last bit of a float
            float sum = 0;
            std::memcpy(&sum, &magnitude, sizeof sum);
            sum += 0.5F;
            std::memcpy(&result, &sum, sizeof result);
            result -= 0x3F00'0000U;
        } else if (magnitude < 0x477F'F000U) {  // below 65,520, which is the first to round to infinity
            result = (magnitude - 0x3800'0000U + 0xFFFU + ((magnitude >> 13U) & 1U)) >> 13U;
        }
        bits = static_cast<std::uint16_t>(result | (word >> 16U & 0x8000U));
    }
    explicit operator float() const {
        const std::uint32_t exponent = bits >> 10U & 0x1FU;
        const std::uint32_t fraction = bits & 0x3FFU;
        std::uint32_t word = (exponent + 112) << 23U | fraction << 13U;
        if (exponent == 31) word = 0x7F80'0000U | fraction << 13U;
        if (exponent == 0) {
            const float subnormal = static_cast<float>(fraction) * 0x1p-24F;
            std::memcpy(&word, &subnormal, sizeof word);
        }
        word |= static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
        float value = 0;
        std::memcpy(&value, &word, sizeof value);
        return value;
    }

    std::uint16_t bits = 0;
};

// The upper half of a float. From float, it rounds to nearest, ties to even.
struct bfloat16 {
    bfloat16() = default;
    explicit bfloat16(float value) {
        std::uint32_t word = 0;
        std::memcpy(&word, &value, sizeof word);
        const bool is_nan = (word & 0x7FFF'FFFFU) > 0x7F80'0000U;
        word = is_nan ? word | 0x40'0000U : word + 0x7FFFU + (word >> 16U & 1U);
        bits = static_cast<std::uint16_t>(word >> 16U);
    }
    explicit operator float() const {
        const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16U;
        float value = 0;
        std::memcpy(&value, &word, sizeof value);
        return value;
    }

    std::uint16_t bits = 0;
};

// The enum atp_element of a type. Specialize it for a type of yours that has the bits of one of these.
template <class T, class = void>
struct ElementOf;
template <>
struct ElementOf<float> : std::integral_constant<int, ATP_ELEMENT_FLOAT32> {};
template <>
struct ElementOf<double> : std::integral_constant<int, ATP_ELEMENT_FLOAT64> {};
template <>
struct ElementOf<float16> : std::integral_constant<int, ATP_ELEMENT_FLOAT16> {};
template <>
struct ElementOf<bfloat16> : std::integral_constant<int, ATP_ELEMENT_BFLOAT16> {};
template <class T>
struct ElementOf<T, std::enable_if_t<std::is_integral_v<T> && std::is_signed_v<T> && (sizeof(T) >= 4)>>
    : std::integral_constant<int, sizeof(T) == 4 ? ATP_ELEMENT_INT32 : ATP_ELEMENT_INT64> {};

#if defined(__cpp_lib_span)
using std::span;
#else
// As std::span of C++20.
template <class T>
class span {
  public:
    span() = default;
    span(T* data, std::size_t size) : data_(data), size_(size) {}
    [[nodiscard]] T* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] T* begin() const { return data_; }
    [[nodiscard]] T* end() const { return data_ + size_; }
    [[nodiscard]] T& operator[](std::size_t index) const { return data_[index]; }

  private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

}  // namespace v1
}  // namespace atp

#endif
