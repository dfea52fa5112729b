// SPDX-License-Identifier: Apache-2.0
#include "tensor/exponent_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

using Exponents = ExponentTensor::Exponents;
constexpr std::uint64_t whole = 100'000;  // one span

std::shared_ptr<const protocol::Tensor> tensor_of(std::vector<float>& values) {
    return make_sum_tensor(numeric::ElementType::float32, values.data(), values.data(), values.size(), 1, 1);
}

// What `ranks` ranks find that have the same blocks.
Exponents found_in(std::vector<std::vector<float>> blocks, std::uint64_t span = whole, std::uint32_t ranks = 3) {
    ExponentTensor::Tensors tensors;
    for (std::vector<float>& block : blocks) tensors.push_back(tensor_of(block));
    std::vector<Exponents> found;
    ExponentTensor tensor(tensors, {.ranks = ranks, .span = span},
                          [&](const Exponents& exponents) { found.push_back(exponents); });
    EXPECT_TRUE(tensor.ready(0, tensor.size()));
    std::vector<std::byte> lanes(tensor.size() * ATP_LANE_BYTES);
    EXPECT_TRUE(tensor.load_integers(0, lanes));
    for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
        wire::store_u32(lanes.data() + at, ranks * wire::load_u32(lanes.data() + at));
    }
    // The second half arrives first.
    const std::size_t half = tensor.size() / 2;
    tensor.store(half, std::span<const std::byte>(lanes).subspan(half * ATP_LANE_BYTES));
    EXPECT_TRUE(found.empty());
    tensor.store(0, std::span<const std::byte>(lanes).first(half * ATP_LANE_BYTES));
    EXPECT_EQ(found.size(), 1U);
    return found.at(0);
}

TEST(ExponentTensor, FindsThatOfTheLargestFiniteMagnitude) {
    for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 31U, 1000U, 1024U}) {
        EXPECT_EQ(found_in({{1.0F}}, whole, ranks), Exponents{127U});
        EXPECT_EQ(found_in({{0.1F, -5.0F, 3.0F}}, whole, ranks), Exponents{129U});
        EXPECT_EQ(found_in({{0.5F, INFINITY, -INFINITY, std::nanf("")}}, whole, ranks), Exponents{126U});
        EXPECT_EQ(found_in({{1e-40F}}, whole, ranks), Exponents{0U}) << "subnormal";
        EXPECT_EQ(found_in({{3e38F}}, whole, ranks), Exponents{254U});
        EXPECT_EQ(found_in({{0.0F, -0.0F, INFINITY}}, whole, ranks), Exponents{std::nullopt});
    }
}

TEST(ExponentTensor, FindsThatOfEachSpanOfEachBlock) {
    std::vector<float> many(2500, 1.0F);
    many[999] = 256.0F;
    many[2499] = 2.0F;
    EXPECT_EQ(found_in({many, {}, {4.0F, 0.0F}}, 1000), (Exponents{135U, 127U, 128U, 129U}));
}

TEST(ExponentTensor, CountsOfAllRanksFitIntoLanes) {
    std::vector<float> value{1.0F};
    for (const auto& [ranks, lanes] :
         {std::pair{1U, 8U}, std::pair{2U, 16U}, std::pair{4U, 26U}, std::pair{1024U, 128U}}) {
        const ExponentTensor tensor({tensor_of(value)}, {.ranks = ranks, .span = whole}, [](const Exponents&) {});
        EXPECT_EQ(tensor.size(), lanes);
    }
}

// Two ranks differ.
TEST(ExponentTensor, H51_TheLargestExponentOfAnyRankCounts) {
    for (const auto& [other, expected] :
         {std::pair{0.25F, 127U}, std::pair{1.0F, 127U}, std::pair{1e9F, 156U}, std::pair{0.0F, 127U}}) {
        std::vector<float> own_values{1.0F};
        std::vector<float> other_values{other};
        Exponents found;
        const ExponentTensor::Rules rules{.ranks = 2, .span = whole};
        ExponentTensor own({tensor_of(own_values)}, rules, [&](const Exponents& all) { found = all; });
        const ExponentTensor second({tensor_of(other_values)}, rules, [](const Exponents&) {});
        std::vector<std::byte> lanes(own.size() * ATP_LANE_BYTES);
        std::vector<std::byte> more(lanes.size());
        EXPECT_TRUE(own.load_integers(0, lanes));
        EXPECT_TRUE(second.load_integers(0, more));
        for (std::size_t at = 0; at < lanes.size(); at += ATP_LANE_BYTES) {
            wire::store_u32(lanes.data() + at, wire::load_u32(lanes.data() + at) + wire::load_u32(more.data() + at));
        }
        own.store(0, lanes);
        EXPECT_EQ(found, Exponents{expected});
    }
}

// Sums may replace the numbers while the exponents still travel.
TEST(ExponentTensor, H56_EveryCopyIsTheFirstOne) {
    std::vector<float> values{1.0F};
    const ExponentTensor tensor({tensor_of(values)}, {.ranks = 2, .span = whole}, [](const Exponents&) {});
    std::vector<std::byte> lanes(tensor.size() * ATP_LANE_BYTES);
    std::vector<std::byte> again(lanes.size());
    EXPECT_TRUE(tensor.load_integers(0, lanes));
    values[0] = 1e9F;
    EXPECT_TRUE(tensor.load_integers(0, again));
    EXPECT_EQ(again, lanes);
}

}  // namespace
}  // namespace atp::tensor
