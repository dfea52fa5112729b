// SPDX-License-Identifier: Apache-2.0
#include "tensor/sum_exponents.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace atp::tensor {
namespace {

class CountedAdvances final : public protocol::Waker {
  public:
    void advance() override { ++count; }
    void fail(const Error& /*error*/) override {}
    int count = 0;
};

// A block of two spans of int16, the second of which has three cells, on two ranks. Only the first one has the sums.
class SumExponentsTest : public ::testing::Test {
  protected:
    static constexpr std::uint8_t form = ATP_DTYPE_INT16;
    static constexpr std::uint64_t cells_of_span = span_elements(form) / cell_elements(form);
    static constexpr std::uint64_t last_elements = 2 * cell_elements(form) + 5;
    static constexpr std::uint64_t elements = span_elements(form) + last_elements;

    SumExponentsTest() {
        for (SpanScales* const scales : {owner_.get(), other_.get()}) scales->begin(protocol::scale_byte(0));
    }
    [[nodiscard]] std::shared_ptr<SpanScales> make(std::shared_ptr<SpanScales> reference = nullptr) const {
        return std::make_shared<SpanScales>(elements, form, std::move(reference), feed_);
    }
    static std::vector<std::byte> load(const SumExponents& tensor, std::uint64_t first, std::uint64_t count) {
        std::vector<std::byte> lanes(count * ATP_LANE_BYTES, std::byte{0xEE});
        EXPECT_TRUE(tensor.load_integers(first, lanes));
        return lanes;
    }

    std::shared_ptr<CountedAdvances> feed_ = std::make_shared<CountedAdvances>();
    std::shared_ptr<SpanScales> owner_ = make();
    std::shared_ptr<SpanScales> other_ = make();
    SumExponents told_{owner_};
    SumExponents heard_{other_};
};

TEST_F(SumExponentsTest, LanesAreReadyWhenTheSumsOfTheirSpansAre) {
    EXPECT_EQ(told_.size(), (cells_of_span + 3 + 3) / 4);
    EXPECT_FALSE(told_.ready(0, 1));
    owner_->settle(0, span_elements(form));
    EXPECT_EQ(feed_->count, 1);
    EXPECT_TRUE(told_.ready(0, cells_of_span / 4));
    EXPECT_FALSE(told_.ready(0, told_.size()));
    owner_->settle(1, last_elements);
    EXPECT_EQ(feed_->count, 2);
    EXPECT_TRUE(told_.ready(0, told_.size()));
}

TEST_F(SumExponentsTest, H50_EveryRankThenHasTheScalesOfTheOwner) {
    const float sums[] = {3.0F, 0x1p-140F, INFINITY, 0.0F, NAN, 1e30F, 0.01F, 0.011F, 2.9F};
    for (std::uint64_t cell = 0; cell < owner_->cells(); ++cell) {
        owner_->record(cell, magnitude_bits(sums[cell % std::size(sums)]));
    }
    owner_->settle(0, span_elements(form));
    owner_->settle(1, last_elements);
    // In any order, and in several packets.
    heard_.store(5, load(told_, 5, told_.size() - 5));
    const auto next_of_other = make(other_);
    EXPECT_FALSE(next_of_other->ready(0));
    EXPECT_TRUE(next_of_other->ready(1));
    feed_->count = 0;
    heard_.store(0, load(told_, 0, 5));
    EXPECT_EQ(feed_->count, 1) << "an operation waits for the first span";
    const auto next_of_owner = make(owner_);
    for (std::uint64_t span = 0; span < 2; ++span) {
        ASSERT_TRUE(next_of_owner->ready(span));
        ASSERT_TRUE(next_of_other->ready(span));
        next_of_owner->decide(span, true);
        next_of_other->decide(span, true);
    }
    for (std::uint64_t cell = 0; cell < owner_->cells(); ++cell) {
        EXPECT_EQ(next_of_other->cell_scale(cell), next_of_owner->cell_scale(cell)) << cell;
    }
}

TEST_F(SumExponentsTest, ExponentOfACellTellsZerosAndNumbersThatAreNotFinite) {
    const float sums[] = {0.0F, 1.0F, -1.5F, 0x1p-140F, INFINITY, NAN};
    for (std::uint64_t cell = 0; cell < std::size(sums); ++cell) owner_->record(cell, magnitude_bits(sums[cell]));
    const int expected[] = {0, 127, 127, 1, 255, 255};
    for (std::uint64_t cell = 0; cell < std::size(sums); ++cell) EXPECT_EQ(owner_->exponent(cell), expected[cell]);
}

}  // namespace
}  // namespace atp::tensor
