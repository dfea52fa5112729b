// SPDX-License-Identifier: Apache-2.0
#include "tensor/values.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "numeric/lanes32_worker.h"
#include "tensor/tensors.h"

namespace atp::tensor {
namespace {

using numeric::ElementType;

constexpr std::size_t elements = 100;
constexpr std::size_t first = 7;
constexpr std::size_t count = 50;

// Bytes of 1.5, -2.25, ... in a type: each has a short form in all of them.
std::vector<std::byte> elements_of(ElementType type) {
    std::vector<std::byte> bytes(elements * numeric::bytes_of(type), std::byte{0});
    const auto tensor = make_sum_tensor(type, bytes.data(), bytes.data(), elements, 1, 1);
    std::array<float, elements> values;
    for (std::size_t at = 0; at < elements; ++at) values[at] = (at % 2 == 0 ? 1.5F : -2.25F) * static_cast<float>(at);
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

TEST_P(ValuesTest, StoredSumsAreThoseOfTheLanes) {
    std::vector<float> sums(count);
    for (std::size_t at = 0; at < count; ++at) sums[at] = 0.25F * static_cast<float>(at) - 3;
    std::vector<std::byte> lanes(count * ATP_LANE_BYTES);
    numeric::floats_to_wire(sums.data(), count, lanes.data());
    for (const double factor : {1.0, 0.5}) {
        std::vector<std::byte> stored = elements_of(GetParam());
        std::vector<std::byte> expected = stored;
        const auto tensor = make_sum_tensor(GetParam(), stored.data(), stored.data(), elements, 1, factor);
        store_values(*tensor, first, sums, lanes);
        make_sum_tensor(GetParam(), expected.data(), expected.data(), elements, 1, factor)->store(first, lanes);
        EXPECT_EQ(stored, expected) << factor;
    }
}

INSTANTIATE_TEST_SUITE_P(Types, ValuesTest,
                         ::testing::Values(ElementType::float32, ElementType::float64, ElementType::float16,
                                           ElementType::bfloat16),
                         [](const auto& tested) { return std::string(numeric::to_string(tested.param)); });

}  // namespace
}  // namespace atp::tensor
