// SPDX-License-Identifier: Apache-2.0
// If a rank or a switch leaves or is late, the operations of the others end in time, with an error that names it.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "fabric.h"
#include "net/clock.h"
#include "support/fails.h"
#include "values.h"

namespace atp::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Departure, OfARankFailsTheOthersWithItsNumber) {
    const auto node = start(small_switch());
    for (const std::uint32_t channels : {1U, 2U}) {
        comm::Options options = small_options();
        options.channels = channels;
        auto ranks = Job(3, {address_of(*node)}, options).formed();
        ASSERT_EQ(ranks.size(), 3U);
        each(3, [&](std::uint32_t rank) {
            if (rank == 1) return ranks[1].reset();
            std::vector<float> values(several_windows, 1.0F);
            const Error error = error_of(sum_in_place(*ranks[rank], values));
            EXPECT_EQ(error.operation, Operation::all_reduce);
            EXPECT_TRUE(says(error, "rank 1"));
            EXPECT_EQ(error.reason, Reason::failed) << "not by the deadline";
        });
    }
}

TEST(Departure, OfARankFailsTheOtherRack) {
    switchd::SwitchNodeConfig config = small_switch();
    config.hold = seconds(2);
    TwoLevels fabric(config, config);
    Job job(4, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])});
    auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 4U);
    each(4, [&](std::uint32_t rank) {
        if (rank == 3) {
            ranks[3].reset();
            return;
        }
        std::vector<float> values(several_windows, 1.0F);
        const Error error = error_of(sum_in_place(*ranks[rank], values));
        EXPECT_TRUE(says(error, "3"));
        EXPECT_EQ(error.reason, Reason::failed) << "not by the deadline";
    });
}

TEST(Departure, OfAnAbortedRankFailsTheOthers) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)});
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    each(2, [&](std::uint32_t rank) {
        std::vector<float> values(100, 1.0F);
        if (rank == 0) {
            ranks[0]->abort();
            EXPECT_EQ(error_of(sum_in_place(*ranks[0], values)).reason, Reason::closed);
            return;
        }
        EXPECT_TRUE(says(error_of(sum_in_place(*ranks[1], values)), "rank 0"));
    });
}

TEST(Departure, OfACommunicatorClosesPendingOperations) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.channels = 2;
    Job job(2, {address_of(*node)}, options);
    auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    std::vector<std::vector<float>> values(400, std::vector<float>(several_windows, 1.0F));
    std::vector<comm::Handle> works;
    std::atomic<std::size_t> callbacks{0};
    for (auto& tensor : values) {
        auto work = sum_in_place(*ranks[0], tensor);
        ASSERT_TRUE(work);
        (*work)->on_done([&] { ++callbacks; });
        works.push_back(*std::move(work));
    }
    ranks[0].reset();
    EXPECT_EQ(callbacks, works.size());
    for (const comm::Handle& work : works) {
        ASSERT_TRUE(work->done());
        EXPECT_TRUE(fails(work->outcome(), {.reason = Reason::closed}));
    }
}

TEST(Departure, OfAnAbortedCommunicatorEndsAccessToItsMemory) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)});
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    {
        auto mine = std::make_unique<std::vector<float>>(several_windows * 20, 1.0F);
        auto work = sum_in_place(*ranks[0], *mine);
        ASSERT_TRUE(work);
        std::vector<float> other(several_windows * 20, 1.0F);
        auto others = sum_in_place(*ranks[1], other);
        ASSERT_TRUE(others);
        ranks[0]->abort();
        static_cast<void>((*work)->wait());
        work->reset();
        mine.reset();  // AddressSanitizer checks what packets still in flight do
        static_cast<void>((*others)->wait());
    }
}

TEST(Departure, OfASwitchEndsOperationsByTheirDeadline) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)});
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    node->stop();
    each(2, [&](std::uint32_t rank) {
        std::vector<float> values(several_windows, 1.0F);
        const Error error = error_of(sum_in_place(*ranks[rank], values, net::now() + seconds(1)));
        EXPECT_EQ(error.operation, Operation::all_reduce);
        EXPECT_EQ(error.reason, Reason::timed_out);
        EXPECT_TRUE(says(error, "nothing was received"));
        EXPECT_TRUE(says(error, address_of(*node)));
        EXPECT_GE(error.elapsed, milliseconds(900));
    });
}

TEST(Departure, OfASwitchBlamesTheSwitchDespiteAnEarlierLateRank) {
    const auto node = start(small_switch());
    Job job(3, {address_of(*node)});
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 3U);
    std::vector<float> values(several_windows, 1.0F);
    auto work = sum_in_place(*ranks[0], values, net::now() + seconds(3));  // before the hold time of the switch is over
    ASSERT_TRUE(work);
    std::this_thread::sleep_for(seconds(1));  // in this time the switch reports the missing rank to this rank
    node->stop();
    const Error error = error_of(work);
    EXPECT_EQ(error.reason, Reason::timed_out);
    EXPECT_EQ(error.peer, address_of(*node));
    EXPECT_TRUE(says(error, "nothing from the switch"));
}

// Ranks 0 and 1 of three call an operation in `body`, and rank 2 calls none.
void without_rank_2(const std::function<void(comm::Communicator&, std::vector<float>& values)>& body) {
    const auto node = start(small_switch());
    Job job(3, {address_of(*node)});
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 3U);
    each(2, [&](std::uint32_t rank) {
        std::vector<float> values(several_windows, 1.0F);
        body(*ranks[rank], values);
    });
}

TEST(LateRank, TimesOutWithItsNumber) {
    without_rank_2([](comm::Communicator& communicator, std::vector<float>& values) {
        const Error error = error_of(sum_in_place(communicator, values, net::now() + seconds(1)));
        EXPECT_EQ(error.reason, Reason::timed_out);
        EXPECT_EQ(error.peer, "rank 2");
    });
}

// The channels of all-gathers join with the first one.
TEST(LateRank, OfAnAllGatherTimesOutWithItsNumber) {
    without_rank_2([](comm::Communicator& communicator, std::vector<float>& values) {
        const Error error = error_of(gather_in_place(communicator, values, net::now() + milliseconds(300)));
        EXPECT_EQ(error.operation, Operation::all_gather);
        EXPECT_EQ(error.reason, Reason::timed_out) << to_string(error);
        // "ranks 1, 2" if the deadline of rank 1 passed first.
        EXPECT_TRUE(says(error, "2 did not join")) << to_string(error);
        EXPECT_EQ(error_of(sum_in_place(communicator, values)).reason, Reason::closed);
    });
}

}  // namespace
}  // namespace atp::test
