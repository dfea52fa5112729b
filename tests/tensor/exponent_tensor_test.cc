// SPDX-License-Identifier: Apache-2.0
#include "tensor/exponent_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

using Exponent = std::optional<unsigned>;

std::shared_ptr<const protocol::Tensor> tensor_of(std::vector<float>& values) {
    return make_sum_tensor(numeric::ElementType::float32, values.data(), values.data(), values.size(), 1, 1);
}

// The lane that a rank with these values sets; nullopt: none.
Exponent lane_of(std::vector<float> values) {
    const ExponentTensor tensor({tensor_of(values)}, [](Exponent) { ADD_FAILURE() << "nothing is stored"; });
    std::vector<std::byte> lanes(tensor.size() * ATP_LANE_BYTES);
    EXPECT_TRUE(tensor.load_integers(0, lanes));
    Exponent found;
    for (unsigned at = 0; at < tensor.size(); ++at) {
        const std::uint32_t lane = wire::load_u32(lanes.data() + at * ATP_LANE_BYTES);
        if (lane == 0) continue;
        EXPECT_EQ(lane, 1U);
        EXPECT_EQ(found, std::nullopt) << "two lanes are set";
        found = at;
    }
    return found;
}

TEST(ExponentTensor, SetsTheLaneOfTheLargestFiniteMagnitude) {
    EXPECT_EQ(lane_of({1.0F}), 127U);
    EXPECT_EQ(lane_of({0.1F, -5.0F, 3.0F}), 129U);
    EXPECT_EQ(lane_of({0.5F, INFINITY, -INFINITY, std::nanf("")}), 126U);
    EXPECT_EQ(lane_of({1e-40F}), 0U) << "subnormal";
    std::vector<float> many(5000, 1.0F);
    many[4999] = 256.0F;
    EXPECT_EQ(lane_of(many), 135U);
}

TEST(ExponentTensor, SetsNoLaneForZeros) { EXPECT_EQ(lane_of({0.0F, -0.0F, INFINITY}), std::nullopt); }

TEST(ExponentTensor, LooksAtAllBlocks) {
    std::vector<float> small{1.0F};
    std::vector<float> large{3.0F, 8.0F};
    std::vector<float> none;
    for (const bool swapped : {false, true}) {
        const ExponentTensor tensor(
            {tensor_of(swapped ? large : small), tensor_of(none), tensor_of(swapped ? small : large)},
            [](Exponent) { ADD_FAILURE() << "nothing is stored"; });
        std::vector<std::byte> lane(ATP_LANE_BYTES);
        EXPECT_TRUE(tensor.ready(0, tensor.size()));
        EXPECT_TRUE(tensor.load_integers(130, lane));
        EXPECT_EQ(wire::load_u32(lane.data()), 1U);
    }
}

TEST(ExponentTensor, FindsTheLastLaneOfAllSumsInAnyOrder) {
    std::vector<float> values{1.0F};
    std::vector<Exponent> found;
    ExponentTensor tensor({tensor_of(values)}, [&](Exponent exponent) { found.push_back(exponent); });
    std::vector<std::byte> upper(156 * ATP_LANE_BYTES);
    std::vector<std::byte> lower(100 * ATP_LANE_BYTES);
    wire::store_u32(upper.data() + 30 * ATP_LANE_BYTES, 2);
    wire::store_u32(upper.data() + 20 * ATP_LANE_BYTES, 1);
    wire::store_u32(lower.data() + 99 * ATP_LANE_BYTES, 4);
    tensor.store(100, upper);
    EXPECT_TRUE(found.empty()) << "100 lanes are missing";
    tensor.store(0, lower);
    EXPECT_EQ(found, std::vector<Exponent>{130U});
}

}  // namespace
}  // namespace atp::tensor
