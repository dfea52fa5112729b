// SPDX-License-Identifier: Apache-2.0
#include "tensor/sealed_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::tensor {
namespace {

constexpr float scale = 1024;

class SealedTensorTest : public ::testing::Test {
  protected:
    std::shared_ptr<OperationSeal> new_seal(std::uint32_t ranks = 1) {
        return std::make_shared<OperationSeal>(
            OperationSeal::Rules{.ranks = ranks, .feed = std::make_shared<protocol::SilentWaker>()});
    }
    SealedTensor over(std::vector<float>& values, const std::shared_ptr<OperationSeal>& seal) {
        return {{.tensor = make_sum_tensor(numeric::ElementType::float32, values.data(), values.data(), values.size(),
                                           scale, 1),
                 .job_scale = scale},
                seal};
    }
    // The only rank gets back what it sent, in parts of 100 words.
    static void pass(SealedTensor& tensor) {
        for (std::uint64_t first = 0; first < tensor.size(); first += 100) {
            std::vector<std::byte> lanes(std::min<std::uint64_t>(100, tensor.size() - first) * ATP_LANE_BYTES);
            ASSERT_TRUE(tensor.load_integers(first, lanes));
            ASSERT_TRUE(tensor.load_integers(first, lanes)) << "a resend";
            tensor.store(first, lanes);
        }
    }
};

TEST_F(SealedTensorTest, FloatsAreSentAsPlainIntegersAndComeBack) {
    std::vector<float> values(1500);
    for (std::size_t at = 0; at < values.size(); ++at) values[at] = static_cast<float>(at) / 4 - 100;
    const auto expected = values;
    const auto seal = new_seal();
    SealedTensor tensor = over(values, seal);
    EXPECT_TRUE(tensor.plain());
    EXPECT_EQ(tensor.size(), values.size());
    pass(tensor);
    EXPECT_TRUE(seal->ready());
    EXPECT_EQ(seal->check(), OperationSeal::SealFinding::holds);
    EXPECT_EQ(values, expected);
}

TEST_F(SealedTensorTest, ChangedLaneIsALie) {
    std::vector<float> values(10, 1);
    const auto seal = new_seal();
    SealedTensor tensor = over(values, seal);
    std::vector<std::byte> lanes(10 * ATP_LANE_BYTES);
    ASSERT_TRUE(tensor.load_integers(0, lanes));
    wire::store_u32(lanes.data(), wire::load_u32(lanes.data()) + 1);
    tensor.store(0, lanes);
    EXPECT_EQ(seal->check(), OperationSeal::SealFinding::lied);
}

TEST_F(SealedTensorTest, WhatIsNotFiniteIsSentAsZeroAndStoredInTheEnd) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> values(300, 1);
    values[7] = infinity;
    values[150] = -infinity;
    values[299] = std::numeric_limits<float>::quiet_NaN();
    const auto seal = new_seal();
    SealedTensor tensor = over(values, seal);
    pass(tensor);
    EXPECT_EQ(values[7], 0);
    ASSERT_EQ(seal->check(), OperationSeal::SealFinding::holds);
    tensor.store_extremes();
    EXPECT_EQ(values[7], infinity);
    EXPECT_EQ(values[150], -infinity);
    EXPECT_TRUE(std::isnan(values[299]));
    EXPECT_EQ(values[8], 1);
    EXPECT_EQ(values[6], 1);
}

TEST_F(SealedTensorTest, NumberWhoseSumCouldLeave32BitsMisfits) {
    std::vector<float> values(3, 1);
    values[1] = std::ldexp(1.0F, 20);
    const auto seal = new_seal();
    SealedTensor fits = over(values, seal);
    pass(fits);
    EXPECT_EQ(seal->check(), OperationSeal::SealFinding::holds);
    values[1] = std::ldexp(1.0F, 21);
    const auto later = new_seal();
    SealedTensor misfits = over(values, later);
    pass(misfits);
    EXPECT_EQ(later->check(), OperationSeal::SealFinding::misfits);
}

TEST_F(SealedTensorTest, WordTensorHasTheWordOfOneRank) {
    const auto first = new_seal(2);
    const auto second = std::make_shared<OperationSeal>(
        OperationSeal::Rules{.rank = 1, .ranks = 2, .feed = std::make_shared<protocol::SilentWaker>()});
    SealWordTensor from(second, 1);
    SealWordTensor to(first, 1);
    ASSERT_TRUE(from.ready(0, from.size()));
    std::vector<std::byte> lanes(ATP_LANE_BYTES * 38);
    for (std::uint64_t at = 0; at < from.size(); at += 38) {
        ASSERT_TRUE(from.load_integers(at, lanes));
        to.store(at, lanes);
    }
    EXPECT_EQ(first->check(), OperationSeal::SealFinding::holds);
}

}  // namespace
}  // namespace atp::tensor
