// SPDX-License-Identifier: Apache-2.0
#include "comm/work.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "net/clock.h"
#include "tensor/tensors.h"

namespace atp::comm {
namespace {

TEST(Operation, WaitingForEverEndsWithTheOperation) {
    Work work(Operation::barrier, tensor::make_broadcast_tensor(nullptr, nullptr, 4), net::now(), never);
    work.add_slice(0, 1, 0);
    std::thread channel([&work] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        work.finish_part(std::nullopt);
    });
    const auto outcome = work.wait_until(never);
    channel.join();
    ASSERT_TRUE(outcome.has_value()) << "it was given up before it was over";
    EXPECT_TRUE(outcome->has_value());
}

TEST(Operation, WaitingUntilATimeThatIsOverSaysNothing) {
    Work work(Operation::barrier, tensor::make_broadcast_tensor(nullptr, nullptr, 4), net::now(), never);
    work.add_slice(0, 1, 0);
    EXPECT_FALSE(work.wait_until(net::now()).has_value());
    work.finish_part(std::nullopt);
    EXPECT_TRUE(work.wait_until(net::now()).has_value());
}

}  // namespace
}  // namespace atp::comm
