// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/bench_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numeric/half.h"
#include "tensor/number_form.h"

namespace atp::apps {
namespace {

using numeric::ElementType;

bool is_half(ElementType type) { return type == ElementType::float16 || type == ElementType::bfloat16; }

// Within this bound, sums fit 32 bits at the job's scale. With dynamic scaling, and in narrow lanes, they keep all
// their bits.
std::int32_t largest_integer(const comm::Options& options, ElementType type, std::int32_t world) {
    if (numeric::is_integer(type)) return 10'000'000;
    if (options.lane_type == tensor::LaneType::int8) return std::max((1 << 4) / world, 1);
    constexpr std::int32_t all_bits_of_bfloat = 127;
    if (is_half(type)) return std::max(std::min(all_bits_of_bfloat, (1 << 11) / world), 1);
    if (options.lane_type == tensor::LaneType::int16) return std::max((1 << 11) / world, 1);
    if (options.scaling == tensor::Scaling::dynamic) return (1 << 24) / world;
    return 10'000'000;
}

// With dynamic scaling a power of two, so that each scale that a job may choose represents all values exactly.
double scale_of(const comm::Options& options, ElementType type, double magnitude, std::int32_t largest) {
    if (options.scaling != tensor::Scaling::dynamic) return options.scale;
    constexpr double usual = 0x1p27;
    constexpr double usual_of_halves = 0x1p10;  // float16 has few small values
    if (magnitude == 0) return is_half(type) ? usual_of_halves : usual;
    return std::exp2(std::round(std::log2(largest / magnitude)));
}

// The number before scaling.
std::int32_t integer_at(std::uint32_t rank, std::size_t element, std::int32_t largest) {
    const auto mixed = static_cast<std::uint32_t>(element * 2654435761U + rank * 40503U + 12345U);
    return static_cast<std::int32_t>(mixed % (2U * static_cast<std::uint32_t>(largest) + 1U)) - largest;
}

template <typename T>
void append_bytes(std::vector<std::byte>& bytes, T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
}

std::uint16_t half_of(ElementType type, float value) {
    std::uint16_t half = 0;
    if (type == ElementType::float16) numeric::floats_to_halves(&value, 1, &half);
    if (type == ElementType::bfloat16) numeric::floats_to_bfloats(&value, 1, &half);
    return half;
}

// The value that a rank reads from its element.
float as_element(ElementType type, double value) {
    float number = static_cast<float>(value);
    const std::uint16_t half = half_of(type, number);
    if (type == ElementType::float16) numeric::halves_to_floats(&half, 1, &number);
    if (type == ElementType::bfloat16) numeric::bfloats_to_floats(&half, 1, &number);
    return number;
}

}  // namespace

BenchValues::BenchValues(const comm::Options& options, ElementType type, double magnitude, std::uint32_t rank,
                         std::uint32_t world)
    : type_(type), width_(numeric::bytes_of(type)), rank_(rank), own_(world) {
    const std::int32_t largest = largest_integer(options, type, static_cast<std::int32_t>(world));
    const double scale = scale_of(options, type, magnitude, largest);
    for (std::size_t at = 0; at < period; ++at) {
        std::int64_t sum = 0;
        for (std::uint32_t each = 0; each < world; ++each) {
            const std::int32_t integer = integer_at(each, at, largest);
            append(own_[each], integer / scale, integer);
            // On the wire, floats are multiples of 1 / scale.
            const float value = as_element(type, integer / scale);
            sum += numeric::is_integer(type)
                       ? integer
                       : static_cast<std::int64_t>(std::nearbyint(value * static_cast<float>(scale)));
        }
        append(sum_, static_cast<double>(sum) * (1.0 / scale), sum);
    }
}

void BenchValues::append(Period& period_of, double value, std::int64_t integer) const {
    const auto number = static_cast<float>(value);
    switch (type_) {
        case ElementType::float32: append_bytes(period_of, number); break;
        case ElementType::float64: append_bytes(period_of, static_cast<double>(number)); break;
        case ElementType::float16:
        case ElementType::bfloat16: append_bytes(period_of, half_of(type_, number)); break;
        case ElementType::int32: append_bytes(period_of, static_cast<std::int32_t>(integer)); break;
        case ElementType::int64: append_bytes(period_of, integer); break;
    }
}

void BenchValues::fill(std::uint32_t rank, std::size_t first, std::span<std::byte> elements) const {
    const Period& values = own_[rank];
    std::size_t from = first % period * width_;
    for (std::size_t at = 0; at < elements.size(); from = 0) {
        const std::size_t count = std::min(values.size() - from, elements.size() - at);
        std::memcpy(elements.data() + at, values.data() + from, count);
        at += count;
    }
}

std::optional<std::size_t> BenchValues::wrong_value(std::uint32_t rank, std::size_t first,
                                                    std::span<const std::byte> elements) const {
    return difference(own_[rank], first, elements);
}

std::optional<std::size_t> BenchValues::wrong_sum(std::size_t first, std::span<const std::byte> elements) const {
    return difference(sum_, first, elements);
}

std::optional<std::size_t> BenchValues::difference(const Period& expected, std::size_t first,
                                                   std::span<const std::byte> elements) const {
    std::size_t from = first % period * width_;
    for (std::size_t at = 0; at < elements.size(); from = 0) {
        const std::size_t count = std::min(expected.size() - from, elements.size() - at);
        if (std::memcmp(elements.data() + at, expected.data() + from, count) != 0) {
            std::size_t byte = 0;
            while (elements[at + byte] == expected[from + byte]) ++byte;
            return (at + byte) / width_;
        }
        at += count;
    }
    return std::nullopt;
}

}  // namespace atp::apps
