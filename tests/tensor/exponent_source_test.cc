// SPDX-License-Identifier: Apache-2.0
#include "tensor/exponent_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tensor/dealt_tensor.h"
#include "tensor/tensors.h"

namespace atp::tensor {
namespace {

class CountingWaker final : public protocol::Waker {
  public:
    void advance() override { ++calls; }
    void fail(const Error& /*error*/) override {}
    int calls = 0;
};

// Blocks of 700 elements for two owners, in fragments of 350.
class SeenExponentTest : public ::testing::Test {
  protected:
    static constexpr std::size_t fragment = 350;

    static std::shared_ptr<DealtTensor> deal(std::vector<float>& values) {
        std::vector<DealtTensor::Block> blocks;
        for (std::uint16_t owner = 0; owner < 2; ++owner) {
            float* const own = values.data() + owner * values.size() / 2;
            blocks.push_back(
                {.tensor = make_sum_tensor(numeric::ElementType::float32, own, own, values.size() / 2, 1, 1),
                 .owner = owner,
                 .member = owner});
        }
        return std::make_shared<DealtTensor>(std::move(blocks), DealtTensor::Rules{.longest = fragment});
    }

    std::vector<float> values_ = std::vector<float>(4 * fragment, 0.75F);
    std::shared_ptr<CountingWaker> feed_ = std::make_shared<CountingWaker>();
    SeenExponent seen_{deal(values_), feed_};
};

TEST_F(SeenExponentTest, IsThatOfTheLargestNumberOfAllFragments) {
    values_[700] = -5.0F;
    values_[3] = INFINITY;
    values_[4] = std::nanf("");
    for (const std::size_t number : {3U, 1U, 0U}) {
        seen_.see(number * fragment, fragment);
        EXPECT_FALSE(seen_.ready());
    }
    EXPECT_EQ(feed_->calls, 0);
    seen_.see(2 * fragment, fragment);
    EXPECT_EQ(feed_->calls, 1) << "the ranks can go on";
    EXPECT_TRUE(seen_.ready());
    EXPECT_EQ(seen_.exponent(), 129U);
}

// Sums may replace the numbers before a fragment is sent again.
TEST_F(SeenExponentTest, H56_LaterReadsDoNotCount) {
    seen_.see(0, 3 * fragment);
    values_.assign(values_.size(), 1e9F);
    seen_.see(0, fragment);
    EXPECT_FALSE(seen_.ready()) << "a fragment counts once";
    values_.assign(values_.size(), 0.0F);
    seen_.see(3 * fragment, fragment);
    EXPECT_TRUE(seen_.ready());
    EXPECT_EQ(seen_.exponent(), 126U);
}

TEST_F(SeenExponentTest, ZerosHaveNone) {
    values_.assign(values_.size(), -0.0F);
    seen_.see(0, values_.size());
    EXPECT_EQ(seen_.exponent(), std::nullopt);
    EXPECT_EQ(feed_->calls, 0) << "no operation waited for the exponent";
}

}  // namespace
}  // namespace atp::tensor
