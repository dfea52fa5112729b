// SPDX-License-Identifier: Apache-2.0
#include "tensor/scale_history.h"

#include <gtest/gtest.h>

namespace atp::tensor {
namespace {

class CountingWaker final : public protocol::Waker {
  public:
    void advance() override { ++advanced; }
    void fail(const Error& /*error*/) override { ADD_FAILURE() << "no call may fail"; }

    int advanced = 0;
};

class ScaleHistoryTest : public ::testing::Test {
  protected:
    std::shared_ptr<CountingWaker> waker_ = std::make_shared<CountingWaker>();
    ScaleHistory history_{250, 100,
                          waker_};  // 250 elements in fragments of 100: three fragments, of which the last is shorter
};

TEST_F(ScaleHistoryTest, FirstOperationUsesTheScaleOfTheJobAtOnce) {
    const std::uint32_t round = history_.begin();
    for (const std::uint64_t first : {0U, 100U, 200U}) {
        EXPECT_TRUE(history_.settled(first, round)) << first;
        EXPECT_EQ(history_.scale(first), protocol::scale_of_job) << first;
    }
    EXPECT_EQ(waker_->advanced, 0);
}

TEST_F(ScaleHistoryTest, NextOperationWaitsForTheSameFragmentOnly) {
    static_cast<void>(history_.begin());
    const std::uint32_t second = history_.begin();
    EXPECT_FALSE(history_.settled(100, second));
    history_.settle(100, 131);
    EXPECT_TRUE(history_.settled(100, second));
    EXPECT_TRUE(history_.settled(199, second)) << "element 199 is in the same fragment as element 100";
    EXPECT_EQ(history_.scale(100), 131);
    EXPECT_FALSE(history_.settled(200, second));
    EXPECT_EQ(history_.scale(200), protocol::scale_of_job);
}

TEST_F(ScaleHistoryTest, WakerAdvancesOnceForAllWaitingOperations) {
    static_cast<void>(history_.begin());
    const std::uint32_t second = history_.begin();
    history_.settle(0, 130);
    EXPECT_EQ(waker_->advanced, 0) << "no operation waited";
    EXPECT_FALSE(history_.settled(100, second));
    EXPECT_FALSE(history_.settled(200, second));
    history_.settle(100, 130);
    EXPECT_EQ(waker_->advanced, 1);
    history_.settle(200, 130);
    EXPECT_EQ(waker_->advanced, 1);
}

}  // namespace
}  // namespace atp::tensor
