// SPDX-License-Identifier: Apache-2.0
#include "comm/work.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/hash.h"
#include "comm/communicator.h"
#include "net/clock.h"
#include "tensor/tensors.h"

namespace atp::comm {
namespace {

class WatchingAttendant final : public WorkAttendant {
  public:
    void attend(Work& /*work*/, Time /*until*/) override { waits.set_value(); }
    void continue_on_thread() override {}
    std::promise<void> waits;  // a caller does
};

TEST(Operation, WaitWithoutDeadlineEndsWithTheOperation) {
    const auto attendant = std::make_shared<WatchingAttendant>();
    Work work(Operation::barrier, tensor::make_broadcast_tensor(nullptr, nullptr, 4), net::now(), never);
    work.add_slice(0, 1, 0);
    work.set_attendant(attendant);
    std::thread channel([&] {
        attendant->waits.get_future().wait();
        work.finish_part(std::nullopt);
    });
    const auto outcome = work.wait_until(never);
    channel.join();
    ASSERT_TRUE(outcome.has_value()) << "it was given up before it was over";
    EXPECT_TRUE(outcome->has_value());
}

TEST(Operation, WaitWithAPastDeadlineReturnsNoOutcomeUntilTheOperationEnds) {
    Work work(Operation::barrier, tensor::make_broadcast_tensor(nullptr, nullptr, 4), net::now(), never);
    work.add_slice(0, 1, 0);
    EXPECT_FALSE(work.wait_until(net::now()).has_value());
    work.finish_part(std::nullopt);
    EXPECT_TRUE(work.wait_until(net::now()).has_value());
}

class CountingAttendant final : public WorkAttendant {
  public:
    void attend(Work& /*work*/, Time /*until*/) override {}
    void continue_on_thread() override { ++calls; }
    int calls = 0;
};

TEST(Operation, OnlyAWorkWithoutAWaitingCallerNeedsAThread) {
    const auto attendant = std::make_shared<CountingAttendant>();
    Work work(Operation::barrier, tensor::make_broadcast_tensor(nullptr, nullptr, 4), net::now(), never);
    work.add_slice(0, 1, 0);
    work.set_attendant(attendant);
    int done = 0;
    work.set_callback([&done] { ++done; });
    EXPECT_EQ(attendant->calls, 0);
    work.continue_without_caller();
    EXPECT_EQ(attendant->calls, 1);
    EXPECT_EQ(done, 0);
    work.finish_part(std::nullopt);
    EXPECT_EQ(done, 1);
    work.on_done([&done] { ++done; });
    EXPECT_EQ(done, 2);
    EXPECT_EQ(attendant->calls, 1) << "a work that is done needs no thread";
}

TEST(Operation, LastStepRunsOnceAllPartsHaveSucceededAndBeforeTheEnd) {
    Work work(Operation::all_reduce, tensor::make_broadcast_tensor(nullptr, nullptr, 8), net::now(), never);
    std::string order;
    work.add_slice(0, 1, 0);
    work.set_last_step([&]() -> std::optional<Error> {
        order += work.done() ? "done" : "step";
        return std::nullopt;
    });
    work.add_slice(1, 1, 0);
    work.set_callback([&] { order += ", callback"; });
    work.finish_part(std::nullopt);
    EXPECT_EQ(order, "");
    work.finish_part(std::nullopt);
    EXPECT_EQ(order, "step, callback");
    EXPECT_TRUE(work.done());
    EXPECT_TRUE(work.outcome());
}

TEST(Operation, LastStepIsLeftOutAfterAnError) {
    Work work(Operation::all_reduce, tensor::make_broadcast_tensor(nullptr, nullptr, 8), net::now(), never);
    bool stepped = false;
    work.add_slice(0, 1, 0);
    work.add_slice(1, 1, 0);
    work.set_last_step([&]() -> std::optional<Error> {
        stepped = true;
        return std::nullopt;
    });
    work.finish_part(Error{.operation = Operation::all_reduce, .reason = Reason::refused});
    work.finish_part(std::nullopt);
    EXPECT_TRUE(work.done());
    EXPECT_FALSE(work.outcome());
    EXPECT_FALSE(stepped);
}

// Ranks of different builds share a job: a change of one of these numbers breaks such jobs.
TEST(Purpose, NumbersOfOperationsTypesAndReductionsMatchTheProtocol) {
    EXPECT_EQ(static_cast<unsigned>(Operation::all_reduce), 12U);
    EXPECT_EQ(static_cast<unsigned>(Operation::broadcast), 13U);
    EXPECT_EQ(static_cast<unsigned>(Operation::barrier), 14U);
    EXPECT_EQ(static_cast<unsigned>(Operation::push), 15U);
    EXPECT_EQ(static_cast<unsigned>(numeric::ElementType::float32), 0U);
    EXPECT_EQ(static_cast<unsigned>(numeric::ElementType::float64), 1U);
    EXPECT_EQ(static_cast<unsigned>(numeric::ElementType::float16), 2U);
    EXPECT_EQ(static_cast<unsigned>(numeric::ElementType::bfloat16), 3U);
    EXPECT_EQ(static_cast<unsigned>(numeric::ElementType::int32), 4U);
    EXPECT_EQ(static_cast<unsigned>(numeric::ElementType::int64), 5U);
    EXPECT_EQ(numeric::element_types.size(), 6U) << "a new type needs a number here and in docs/spec/numbers.md";
    EXPECT_EQ(static_cast<unsigned>(Reduction::sum), 0U);
    EXPECT_EQ(static_cast<unsigned>(Reduction::average), 1U);
    EXPECT_EQ(static_cast<unsigned>(Reduction::scaled), 2U);
}

// Computed independently of this code, from the formula in docs/spec/numbers.md.
TEST(Purpose, HashesMatchTheProtocol) {
    const std::uint32_t sum_of_floats = detail_of(numeric::ElementType::float32, Reduction::sum);
    EXPECT_EQ(purpose_of(Operation::all_reduce, 1, mix(sum_of_floats + 1)), 34597U);
    const std::uint32_t sum_of_integers = detail_of(numeric::ElementType::int32, Reduction::sum);
    EXPECT_EQ(purpose_of(Operation::all_reduce, 30, mix(mix(sum_of_integers + 10) + 20)), 11430U);
    EXPECT_EQ(purpose_of(Operation::broadcast, 100, 0), 23755U);
    EXPECT_EQ(purpose_of(Operation::broadcast, 100, 3), 17103U);
    EXPECT_EQ(purpose_of(Operation::barrier, 1, 0), 18295U);
    EXPECT_EQ(purpose_of(Operation::push, 1000, sum_of_floats ^ mix(7)), 58047U);
    const std::uint32_t maximum = detail_of(numeric::FoldType::float32, numeric::FoldOperation::maximum);
    EXPECT_EQ(purpose_of(Operation::all_reduce, 1, mix(maximum + 1)), 14696U);
    const std::uint32_t minimum = detail_of(numeric::FoldType::boolean, numeric::FoldOperation::minimum);
    EXPECT_EQ(purpose_of(Operation::all_reduce, 30, mix(mix(minimum + 10) + 20)), 55012U);
    const std::uint32_t scaled = detail_of(numeric::ElementType::float32, Summing::scaled_by(1.0 / 3));
    EXPECT_EQ(purpose_of(Operation::all_reduce, 300, mix(scaled + 300)), 3186U);
    const std::uint32_t average_of_longs = detail_of(numeric::ElementType::int64, Reduction::average);
    EXPECT_EQ(purpose_of(Operation::all_reduce, (5ULL << 32U) + 7, average_of_longs), 28486U);
}

}  // namespace
}  // namespace atp::comm
