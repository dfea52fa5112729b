// SPDX-License-Identifier: Apache-2.0
// Compares two conversions of an element, bit by bit: by the code for a device, and by the code for tensors of the
// host.
#include "staging/element.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "tensor/tensors.h"

namespace atp::staging {
namespace {

using numeric::ElementType;

constexpr std::array floats{ElementType::float32, ElementType::float64, ElementType::float16, ElementType::bfloat16};
constexpr std::array<float, 4> scales{1.0F, 1e8F, 3e-5F, 0x1p40F};
constexpr std::array<double, 4> factors{1.0, 1.0 / 3, 0.25, 1.0 / 1024};

// Bits of special float32 values and of their neighbours: zero, subnormals, halves between integers, the limits of
// int32, the largest number, infinity, quiet and signalling NaN with payloads. Then random bits.
std::vector<std::uint32_t> interesting_bits() {
    std::vector<std::uint32_t> bits;
    for (const std::uint32_t centre : {0U, 0x00800000U, 0x33000000U, 0x33800000U, 0x38800000U, 0x3F000000U, 0x3FC00000U,
                                       0x40200000U, 0x477FE000U, 0x47800000U, 0x4AFFFFFFU, 0x4B000000U, 0x4EFFFFFFU,
                                       0x4F000000U, 0x7F000000U, 0x7F7FFFFFU, 0x7F800000U, 0x7FA00000U, 0x7FC00000U}) {
        for (int step = -3; step <= 3; ++step) {
            const std::uint32_t beside = (centre + static_cast<std::uint32_t>(step)) & float_magnitude;
            bits.push_back(beside);
            bits.push_back(beside | ~float_magnitude);
        }
    }
    std::mt19937 random(1);
    for (int i = 0; i < 100000; ++i) bits.push_back(static_cast<std::uint32_t>(random()));
    return bits;
}

template <class Format>
std::vector<typename Format::Element> interesting_elements() {
    std::vector<typename Format::Element> elements;
    if constexpr (sizeof(typename Format::Element) == 2) {
        for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) elements.push_back(static_cast<std::uint16_t>(bits));
    } else if constexpr (sizeof(typename Format::Element) == 4) {
        elements = interesting_bits();
    } else {
        std::mt19937_64 random(2);
        for (const std::uint32_t bits : interesting_bits()) {
            const std::uint64_t wide = DeviceFloat64::from_sum(bits, 1);
            elements.insert(elements.end(), {wide, wide + 1, wide - 1, wide + (1U << 28U), random()});
        }
        // NaN with a payload that does not fit in float32: two signalling ones and a quiet one.
        elements.insert(elements.end(), {0x7FF0000000000001U, 0xFFF0000000000001U, 0x7FFFFFFFFFFFFFFFU});
    }
    return elements;
}

std::uint32_t lane_at(const std::vector<std::byte>& lanes, std::size_t at) {
    std::uint32_t lane;
    std::memcpy(&lane, &lanes[at * sizeof lane], sizeof lane);
    return lane;
}

class Elements : public testing::TestWithParam<ElementType> {};

TEST_P(Elements, IntegersEqualThoseOfTheHost) {
    with_format(GetParam(), []<class Format>(Format) {
        auto elements = interesting_elements<Format>();
        std::vector<std::byte> lane(ATP_LANE_BYTES);
        for (const float scale : scales) {
            const auto tensor =
                tensor::make_sum_tensor(GetParam(), elements.data(), elements.data(), elements.size(), scale, 1);
            for (std::size_t at = 0; at < elements.size(); ++at) {
                const bool fits = tensor->load_integers(at, lane);
                const std::uint32_t ours = integer_lane<Format>(elements[at], scale);
                ASSERT_EQ(fits, ours != refused_lane) << std::hex << elements[at] << " times " << scale;
                if (!fits) continue;
                ASSERT_EQ(lane_at(lane, 0), ours) << std::hex << elements[at] << " times " << scale;
            }
        }
    });
}

TEST_P(Elements, FloatsEqualThoseOfTheHost) {
    with_format(GetParam(), []<class Format>(Format) {
        auto elements = interesting_elements<Format>();
        const auto tensor =
            tensor::make_sum_tensor(GetParam(), elements.data(), elements.data(), elements.size(), 1, 1);
        std::vector<std::byte> lanes(elements.size() * ATP_LANE_BYTES);
        tensor->load_floats(0, lanes);
        for (std::size_t at = 0; at < elements.size(); ++at) {
            ASSERT_EQ(lane_at(lanes, at), float_lane<Format>(elements[at])) << std::hex << elements[at];
        }
    });
}

TEST_P(Elements, SumsEqualThoseOfTheHost) {
    with_format(GetParam(), []<class Format>(Format) {
        const auto sums = interesting_bits();
        std::vector<std::byte> lanes(sums.size() * ATP_LANE_BYTES);
        for (std::size_t at = 0; at < sums.size(); ++at) {
            const std::uint32_t lane = numeric::lane::swap_bytes(sums[at]);
            std::memcpy(&lanes[at * ATP_LANE_BYTES], &lane, sizeof lane);
        }
        for (const double factor : factors) {
            std::vector<typename Format::Element> out(sums.size());
            tensor::make_sum_tensor(GetParam(), out.data(), out.data(), out.size(), 1, factor)->store(0, lanes);
            for (std::size_t at = 0; at < sums.size(); ++at) {
                ASSERT_EQ(out[at], element_of<Format>(lane_at(lanes, at), factor))
                    << std::hex << sums[at] << " times " << factor;
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Staging, Elements, testing::ValuesIn(floats),
                         [](const auto& type) { return std::string(to_string(type.param)); });

}  // namespace
}  // namespace atp::staging
