// SPDX-License-Identifier: Apache-2.0
#include "tensor/values.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "numeric/lanes32_worker.h"
#include "tensor/span_scales.h"
#include "tensor/tensors.h"

namespace atp::tensor {
namespace {

using numeric::ElementType;

constexpr std::size_t elements = 2 * values_max + 100;
constexpr std::size_t first = 7;
constexpr std::size_t count = 50;

// Bytes of 1.5, -2.25, ... in a type: each has a short form in all of them.
std::vector<std::byte> elements_of(ElementType type) {
    std::vector<std::byte> bytes(elements * numeric::bytes_of(type), std::byte{0});
    const auto tensor = make_sum_tensor(type, bytes.data(), bytes.data(), elements, 1, 1);
    std::array<float, elements> values;
    for (std::size_t at = 0; at < elements; ++at)
        values[at] = (at % 2 == 0 ? 1.5F : -2.25F) * static_cast<float>(at % 64);
    std::vector<std::byte> lanes(elements * ATP_LANE_BYTES);
    numeric::floats_to_wire(values.data(), elements, lanes.data());
    tensor->store(0, lanes);
    return bytes;
}

class ValuesTest : public ::testing::TestWithParam<ElementType> {};

TEST_P(ValuesTest, LoadedValuesAreThoseOfTheLanes) {
    std::vector<std::byte> bytes = elements_of(GetParam());
    const auto tensor = make_sum_tensor(GetParam(), bytes.data(), bytes.data(), elements, 1, 1);
    std::vector<float> values(count);
    load_values(*tensor, first, values);
    std::vector<std::byte> lanes(count * ATP_LANE_BYTES);
    tensor->load_floats(first, lanes);
    std::vector<float> expected(count);
    numeric::floats_from_wire(lanes.data(), count, expected.data());
    EXPECT_EQ(values, expected);
    EXPECT_EQ(values[1], 1.5F * (first + 1));
}

TEST_P(ValuesTest, VisitedValuesAreThoseOfTheLanes) {
    std::vector<std::byte> bytes = elements_of(GetParam());
    const auto tensor = make_sum_tensor(GetParam(), bytes.data(), bytes.data(), elements, 1, 1);
    std::vector<float> values;
    EXPECT_TRUE(visit_values(*tensor, first, elements - first, [&](std::uint64_t at, std::span<const float> some) {
        EXPECT_EQ(at, first + values.size());
        values.insert(values.end(), some.begin(), some.end());
        return true;
    }));
    std::vector<std::byte> lanes((elements - first) * ATP_LANE_BYTES);
    tensor->load_floats(first, lanes);
    std::vector<float> expected(elements - first);
    numeric::floats_from_wire(lanes.data(), expected.size(), expected.data());
    EXPECT_EQ(values, expected);
}

TEST_P(ValuesTest, VisitEndsWhenItIsToldTo) {
    std::vector<std::byte> bytes = elements_of(GetParam());
    const auto tensor = make_sum_tensor(GetParam(), bytes.data(), bytes.data(), elements, 1, 1);
    int visits = 0;
    EXPECT_FALSE(visit_values(*tensor, 0, elements, [&](std::uint64_t, std::span<const float>) {
        ++visits;
        return false;
    }));
    EXPECT_EQ(visits, 1);
}

TEST_P(ValuesTest, StoredSumsAreThoseOfTheLanes) {
    std::vector<float> sums(elements - first);
    for (std::size_t at = 0; at < sums.size(); ++at) sums[at] = 0.25F * static_cast<float>(at % 50) - 3;
    sums.back() = -20;
    std::vector<std::byte> lanes(sums.size() * ATP_LANE_BYTES);
    numeric::floats_to_wire(sums.data(), sums.size(), lanes.data());
    for (const double factor : {1.0, 0.5}) {
        std::vector<std::byte> stored = elements_of(GetParam());
        std::vector<std::byte> expected = stored;
        const auto tensor = make_sum_tensor(GetParam(), stored.data(), stored.data(), elements, 1, factor);
        EXPECT_EQ(store_values(*tensor, first, lanes), magnitude_bits(20));
        make_sum_tensor(GetParam(), expected.data(), expected.data(), elements, 1, factor)->store(first, lanes);
        EXPECT_EQ(stored, expected) << factor;
    }
}

TEST(Values, LargestSumIsNaNIfOneIs) {
    std::vector<std::uint16_t> stored(2 * values_max);
    std::vector<float> sums(stored.size(), 1.0F);
    sums[3] = std::numeric_limits<float>::quiet_NaN();
    sums.back() = std::numeric_limits<float>::infinity();
    std::vector<std::byte> lanes(sums.size() * ATP_LANE_BYTES);
    numeric::floats_to_wire(sums.data(), sums.size(), lanes.data());
    const auto tensor = make_sum_tensor(ElementType::bfloat16, stored.data(), stored.data(), stored.size(), 1, 1);
    EXPECT_GT(store_values(*tensor, 0, lanes), infinity_bits);
}

INSTANTIATE_TEST_SUITE_P(Types, ValuesTest,
                         ::testing::Values(ElementType::float32, ElementType::float64, ElementType::float16,
                                           ElementType::bfloat16),
                         [](const auto& tested) { return std::string(numeric::to_string(tested.param)); });

}  // namespace
}  // namespace atp::tensor
