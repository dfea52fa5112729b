// SPDX-License-Identifier: Apache-2.0
// A failure ends every rank in time, with an error that names the next step, and never with a wrong sum.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <thread>

#include "fabric.h"
#include "net/clock.h"
#include "relay.h"
#include "values.h"

namespace atp::test {
namespace {

using comm::Buffer;
using comm::Reduction;
using numeric::ElementType;
using std::chrono::milliseconds;
using std::chrono::seconds;

Result<comm::Handle> sum(comm::Communicator& communicator, std::vector<float>& values, Time deadline = never) {
    return communicator.all_reduce({values.data(), values.data(), values.size()}, ElementType::float32, Reduction::sum,
                                   deadline);
}

// ------------------------------------------------------------------------------------------------------------ Forming

TEST(Formation, MissingRankTimesOutWithItsNumber) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.join_timeout = milliseconds(500);
    Job job(3, {address_of(*node)}, options);
    each(2, [&](std::uint32_t rank) {
        const auto formed = job.form(rank);
        ASSERT_FALSE(formed);
        EXPECT_EQ(formed.error().reason, Reason::timed_out);
        EXPECT_TRUE(says(formed.error(), "2"));
        EXPECT_GT(formed.error().elapsed, milliseconds(100));
    });
}

TEST(Formation, SilentSwitchTimesOutWithItsAddress) {
    const auto silent = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(silent);
    comm::Options options = small_options();
    options.join_timeout = milliseconds(500);
    const std::string address = to_string((*silent)->local());
    const auto formed = Job(1, {address}, options).form(0);
    ASSERT_FALSE(formed);
    EXPECT_EQ(formed.error().reason, Reason::timed_out);
    EXPECT_EQ(formed.error().peer, address);
    EXPECT_TRUE(says(formed.error(), "atp doctor"));
}

// If many jobs ask a switch at once, the switch drops some HELLOs of every length. Later it answers again.
TEST(Formation, SwitchSilentDuringThePathProbesOnlyDelays) {
    const auto node = start(small_switch());
    constexpr unsigned silent_from = 1;  // after the first HELLO
    constexpr unsigned silent_until = 12;
    const Relay relay(node->address(), [](Way way, unsigned number, std::size_t) {
        return way == Way::there && number >= silent_from && number < silent_until ? Disposition::lose
                                                                                   : Disposition::pass;
    });
    Job job(1, {to_string(relay.address())});
    const auto formed = job.form(0);
    ASSERT_TRUE(formed) << to_string(formed.error());
    EXPECT_EQ((*formed)->formation().lanes, small_lanes);
}

TEST(Formation, RankThatGivesUpReportsTheReasonToTheOthers) {
    const auto node = start(small_switch());
    const auto silent = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(silent);
    const std::string nowhere = to_string((*silent)->local());
    for (const std::uint32_t lost : {0U, 1U}) {
        // Rank 2 never comes; the other ranks still get the reason.
        Job job(3, {address_of(*node)});
        each(2, [&](std::uint32_t rank) {
            comm::Options options = job.options_of(rank);
            options.join_timeout = rank == lost ? milliseconds(300) : longest_wait;
            if (rank == lost) options.switch_address = nowhere;
            const auto formed = comm::Communicator::form(job.store(), rank, 3, options);
            ASSERT_FALSE(formed);
            EXPECT_EQ(formed.error().reason, Reason::timed_out);
            EXPECT_TRUE(says(formed.error(), nowhere));
            if (rank == lost) return;
            EXPECT_EQ(formed.error().peer, "rank " + std::to_string(lost));
            EXPECT_TRUE(says(formed.error(), "gave up"));
        });
    }
}

TEST(Formation, RefusedRankReportsTheReasonToTheOthers) {
    switchd::SwitchNodeConfig one_job = small_switch();
    one_job.jobs = 1;
    const TwoLevels tree(small_switch(), one_job);
    Job first(1, {address_of(*tree.leaves[1])});
    const auto taken = first.formed();
    ASSERT_EQ(taken.size(), 1U);
    Job second(2, {address_of(*tree.leaves[0]), address_of(*tree.leaves[1])});
    const auto formed = second.form_all();
    for (const auto& rank : formed) {
        ASSERT_FALSE(rank);
        EXPECT_EQ(rank.error().reason, Reason::rejected);
        EXPECT_TRUE(says(rank.error(), "table of jobs is full (1)"));
    }
    EXPECT_EQ(formed[0].error().peer, "rank 1");
}

TEST(Formation, InvalidRankWorldOrOptionIsRefused) {
    store::MemoryStore store;
    const auto refused = [&](std::uint32_t rank, std::uint32_t world, auto change) {
        comm::Options options = small_options();
        options.switch_address = "127.0.0.1:1";
        change(options);
        const auto formed = comm::Communicator::form(store, rank, world, options);
        return !formed && formed.error().reason == Reason::malformed;
    };
    EXPECT_TRUE(refused(0, 0, [](comm::Options&) {}));
    EXPECT_TRUE(refused(2, 2, [](comm::Options&) {}));
    EXPECT_TRUE(refused(0, 1, [](comm::Options& options) { options.channels = 0; }));
    EXPECT_TRUE(refused(0, 1, [](comm::Options& options) { options.lanes = 1; }));
    EXPECT_TRUE(refused(0, 1, [](comm::Options& options) { options.window = 3; }));
    EXPECT_TRUE(refused(0, 1, [](comm::Options& options) { options.scale = 0; }));
    EXPECT_TRUE(refused(0, 1, [](comm::Options& options) { options.switch_address.clear(); }));
}

// An infinite timeout is added to clock values and must not wrap around into the past.
TEST(Formation, InfiniteTimeoutsFormACommunicator) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.join_timeout = options.timeout = Duration::max();
    Job(2, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        expect_sum(communicator, several_windows, 1);
    });
}

TEST(Formation, RefusedSocketBuffersAreReportedOnce) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.channels = 2;
    options.socket_buffer_bytes = 2'000'000'000;  // no kernel grants this
    const auto ranks = Job(1, {address_of(*node)}, options).formed();
    ASSERT_EQ(ranks.size(), 1U);
    std::vector<std::string> without;
    EXPECT_TRUE(eventually([&] { return !(without = ranks[0]->without()).empty(); }));
    for (const std::string_view buffer : {"receive-buffer: ", "send-buffer: "}) {
        const auto is_of = [buffer](const std::string& text) { return text.starts_with(buffer); };
        EXPECT_EQ(std::ranges::count_if(without, is_of), 1) << "once for any number of channels";
    }
}

TEST(Formation, DifferentOptionsAreMismatchedByName) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)});
    each(2, [&](std::uint32_t rank) {
        comm::Options options = job.options_of(rank);
        options.window = rank == 0 ? 16 : 32;
        const auto formed = comm::Communicator::form(job.store(), rank, 2, options);
        ASSERT_FALSE(formed);
        EXPECT_EQ(formed.error().reason, Reason::mismatched);
        EXPECT_TRUE(says(formed.error(), "window=16"));
        EXPECT_TRUE(says(formed.error(), "window=32"));
    });
}

TEST(Formation, FullTableOfJobsIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.jobs = 1;
    const auto node = start(config);
    Job first(1, {address_of(*node)});
    const auto ranks = first.formed();
    const auto formed = Job(1, {address_of(*node)}).form(0);
    ASSERT_FALSE(formed);
    EXPECT_EQ(formed.error().reason, Reason::rejected);
    EXPECT_TRUE(says(formed.error(), "table of jobs is full (1)"));
    EXPECT_TRUE(says(formed.error(), "--jobs"));
}

TEST(Formation, FullTableOfChannelsIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.channels = 2;
    const auto node = start(config);
    comm::Options options = small_options();
    options.channels = 3;
    const auto formed = Job(1, {address_of(*node)}, options).form(0);
    ASSERT_FALSE(formed);
    EXPECT_EQ(formed.error().reason, Reason::rejected);
    EXPECT_TRUE(says(formed.error(), "table of channels is full (2)"));
}

TEST(Formation, LimitOfJobsHoldsForAllThreadsOfASwitch) {
    switchd::SwitchNodeConfig config = small_switch();
    config.shards = 4;
    config.jobs = 8;
    const auto node = start(config);
    std::vector<std::unique_ptr<comm::Communicator>> all;
    for (std::uint32_t i = 0; i < config.jobs; ++i) {
        auto formed = Job(1, {address_of(*node)}).form(0);
        ASSERT_TRUE(formed) << to_string(formed.error());
        all.push_back(*std::move(formed));
    }
    const auto refused = Job(1, {address_of(*node)}).form(0);
    ASSERT_FALSE(refused);
    EXPECT_TRUE(says(refused.error(), "table of jobs is full (8)"));
    all.pop_back();
    EXPECT_TRUE(eventually([&] { return Job(1, {address_of(*node)}).form(0).has_value(); }));
}

TEST(Formation, LimitOfChannelsHoldsForAllThreadsOfASwitch) {
    switchd::SwitchNodeConfig config = small_switch();
    config.shards = 4;
    config.jobs = 2;  // a job counts once, on however many threads its channels run
    config.channels = 9;
    const auto node = start(config);
    comm::Options options = small_options();
    options.channels = 8;
    const auto first = Job(1, {address_of(*node)}, options).form(0);
    ASSERT_TRUE(first) << to_string(first.error());
    options.channels = 2;
    const auto refused = Job(1, {address_of(*node)}, options).form(0);
    ASSERT_FALSE(refused);
    EXPECT_TRUE(says(refused.error(), "table of channels is full (9)"));
    options.channels = 1;
    EXPECT_TRUE(eventually([&] { return Job(1, {address_of(*node)}, options).form(0).has_value(); }));
}

TEST(Formation, FullServerMemoryIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.server_bytes = 1000;
    const auto node = start(config);
    const auto formed = Job(1, {address_of(*node)}).form(0);
    ASSERT_FALSE(formed);
    EXPECT_EQ(formed.error().reason, Reason::rejected);
    EXPECT_TRUE(says(formed.error(), "--server-memory"));
}

TEST(Formation, SwitchThatHostsNoServersIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.server_bytes = 0;
    const auto node = start(config);
    const auto formed = Job(1, {address_of(*node)}).form(0);
    ASSERT_FALSE(formed);
    EXPECT_EQ(formed.error().reason, Reason::rejected);
    EXPECT_TRUE(says(formed.error(), "colocated or dedicated"));
    comm::Options options = small_options();
    options.server = comm::ServerPlace::colocated;
    Job(2, {address_of(*node)}, options).run([](comm::Communicator& communicator) {
        expect_sum(communicator, several_windows, 1);
    });
}

TEST(Formation, SilentServerTimesOutWithItsAddress) {
    const auto silent = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(silent);
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.server = comm::ServerPlace::dedicated;
    options.dedicated_servers = {to_string((*silent)->local())};
    options.join_timeout = std::chrono::milliseconds(500);
    const auto formed = Job(1, {address_of(*node)}, options).form(0);
    ASSERT_FALSE(formed);
    EXPECT_EQ(formed.error().reason, Reason::timed_out);
    EXPECT_TRUE(says(formed.error(), "parameter server at " + options.dedicated_servers.front()));
}

// A leaf whose parent is down answers, and reports that it waits for the parent.
TEST(Formation, SilentParentIsReportedWithItsAddress) {
    const auto silent = net::UdpSocket::open({.local = wire::Address::loopback(wire::Family::ipv4, 0)});
    ASSERT_TRUE(silent);
    switchd::SwitchNodeConfig config = small_switch();
    config.parent = (*silent)->local();
    const auto node = start(config);
    comm::Options options = small_options();
    options.join_timeout = milliseconds(500);
    const auto formed = Job(1, {address_of(*node)}, options).form(0);
    ASSERT_FALSE(formed);
    EXPECT_TRUE(says(formed.error(), to_string(config.parent)));
}

// ------------------------------------------------------------------------------------------------- Ranks that disagree

// Every rank calls an operation, and the operations differ. All ranks get an error soon, and no rank gets a result.
void expect_mismatch(const std::vector<std::string>& switches, std::uint32_t channels,
                     const std::function<Result<comm::Handle>(comm::Communicator&, std::vector<float>&)>& call) {
    comm::Options options = small_options();
    options.channels = channels;
    Job job(3, switches, options);
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 3U);
    each(3, [&](std::uint32_t rank) {
        const std::vector<float> before(several_windows, 1.0F + static_cast<float>(rank));
        std::vector<float> values = before;
        const Error error = error_of(call(*ranks[rank], values));
        EXPECT_EQ(values, before) << "something came of it at rank " << rank;
        // A call that the failure overtakes is refused, with the failure in its text.
        EXPECT_TRUE(error.reason == Reason::mismatched || error.reason == Reason::closed) << to_string(error);
        EXPECT_TRUE(says(error, "make all ranks call the same")) << "rank " << rank << ": " << to_string(error);
        const Error next = error_of(sum(*ranks[rank], values));
        EXPECT_TRUE(says(next, "make all ranks call the same")) << "rank " << rank << ": " << to_string(next);
    });
}

using Call = Result<comm::Handle>;

TEST(Mismatch, OfSizesFailsOnEveryRank) {
    const auto node = start(small_switch());
    expect_mismatch({address_of(*node)}, 1, [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
        return communicator.all_reduce({values.data(), values.data(), communicator.rank() == 1 ? 100U : 101U},
                                       ElementType::float32, Reduction::sum);
    });
}

TEST(Mismatch, OfSizesFailsOnEveryChannel) {
    const auto node = start(small_switch());
    expect_mismatch({address_of(*node)}, 3, [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
        const std::size_t size = communicator.rank() == 2 ? 10U : several_windows;
        return communicator.all_reduce({values.data(), values.data(), size}, ElementType::float32, Reduction::sum);
    });
}

TEST(Mismatch, OfSizesFailsOverTwoLevels) {
    TwoLevels fabric;
    expect_mismatch(
        {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, 1,
        [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
            const std::size_t size = communicator.rank() == 1 ? 1000U : 999U;
            return communicator.all_reduce({values.data(), values.data(), size}, ElementType::float32, Reduction::sum);
        });
}

TEST(Mismatch, OfTypesFailsOnEveryRank) {
    const auto node = start(small_switch());
    expect_mismatch({address_of(*node)}, 1, [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
        const ElementType type = communicator.rank() == 0 ? ElementType::int32 : ElementType::float32;
        return communicator.all_reduce({values.data(), values.data(), 500}, type, Reduction::sum);
    });
}

TEST(Mismatch, OfReductionsFailsOnEveryRank) {
    const auto node = start(small_switch());
    expect_mismatch({address_of(*node)}, 1, [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
        const Reduction reduction = communicator.rank() == 0 ? Reduction::average : Reduction::sum;
        return communicator.all_reduce({values.data(), values.data(), 10}, ElementType::float32, reduction);
    });
}

TEST(Mismatch, OfRootsFailsOnEveryRank) {
    const auto node = start(small_switch());
    expect_mismatch({address_of(*node)}, 1, [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
        return communicator.broadcast(values.data(), 10, communicator.rank() == 0 ? 0 : 1);
    });
}

TEST(Mismatch, OfTheOrderOfOperationsFailsOnEveryRank) {
    const auto node = start(small_switch());
    expect_mismatch({address_of(*node)}, 1, [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
        // Rank 2 calls the barrier first.
        if (communicator.rank() == 2) return communicator.barrier();
        auto first = communicator.all_reduce({values.data(), values.data(), 10}, ElementType::float32, Reduction::sum);
        auto second = communicator.barrier();
        return first;
    });
}

// In place: rank r passes part r of the values.
Call gather(comm::Communicator& communicator, std::vector<float>& values, Time deadline = never) {
    constexpr std::size_t part = 50;
    const std::vector<std::size_t> bytes(communicator.world(), part * sizeof(float));
    return communicator.all_gather(values.data() + communicator.rank() * part, values.data(), bytes, deadline);
}

// They use channels of their own, and no rank calls a second operation.
TEST(Mismatch, H61_OfAnAllGatherAndASumFailsOnEveryRank) {
    const auto node = start(small_switch());
    for (const std::uint32_t channels : {1U, 2U}) {
        for (const std::uint32_t gathering : {0U, 2U}) {
            expect_mismatch({address_of(*node)}, channels,
                            [&](comm::Communicator& communicator, std::vector<float>& values) -> Call {
                                if (communicator.rank() == gathering) return gather(communicator, values);
                                return communicator.all_reduce({values.data(), values.data(), values.size()},
                                                               ElementType::float32, Reduction::sum);
                            });
        }
    }
}

TEST(Mismatch, H61_OfASumAfterAllGathersFailsOnEveryRank) {
    const auto node = start(small_switch());
    expect_mismatch({address_of(*node)}, 1, [](comm::Communicator& communicator, std::vector<float>& values) -> Call {
        std::vector<float> other(values.size(), 1.0F);
        for (int call = 0; call < 2; ++call) EXPECT_TRUE(gather(communicator, other).value()->wait());
        if (communicator.rank() != 1) return gather(communicator, values);
        return communicator.barrier();
    });
}

// The channels of all-gathers join with the first one.
TEST(Mismatch, ARankThatCallsNoAllGatherIsNamedAtTheDeadline) {
    const auto node = start(small_switch());
    Job job(3, {address_of(*node)});
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 3U);
    each(2, [&](std::uint32_t rank) {
        std::vector<float> values(several_windows, 1.0F);
        const Error error = error_of(gather(*ranks[rank], values, net::now() + milliseconds(300)));
        EXPECT_EQ(error.operation, Operation::all_gather);
        EXPECT_EQ(error.reason, Reason::timed_out) << to_string(error);
        // "ranks 1, 2" if the deadline of rank 1 passed first.
        EXPECT_TRUE(says(error, "2 did not join")) << to_string(error);
        EXPECT_EQ(error_of(sum(*ranks[rank], values)).reason, Reason::closed);
    });
}

// ---------------------------------------------------------------------------------------------------------- Departures

TEST(Departure, OfARankFailsTheOthersWithItsNumber) {
    const auto node = start(small_switch());
    for (const std::uint32_t channels : {1U, 2U}) {
        comm::Options options = small_options();
        options.channels = channels;
        Job job(3, {address_of(*node)}, options);
        auto ranks = job.formed();
        ASSERT_EQ(ranks.size(), 3U);
        each(3, [&](std::uint32_t rank) {
            if (rank == 1) {
                std::this_thread::sleep_for(milliseconds(50));
                ranks[1].reset();
                return;
            }
            std::vector<float> values(several_windows, 1.0F);
            const Error error = error_of(sum(*ranks[rank], values));
            EXPECT_EQ(error.operation, Operation::all_reduce);
            EXPECT_TRUE(says(error, "rank 1"));
            EXPECT_EQ(error.reason, Reason::failed) << "not by the deadline";
            EXPECT_GT(error.elapsed, milliseconds(1));
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
        const Error error = error_of(sum(*ranks[rank], values));
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
            EXPECT_EQ(error_of(sum(*ranks[0], values)).reason, Reason::closed);
            return;
        }
        EXPECT_TRUE(says(error_of(sum(*ranks[1], values)), "rank 0"));
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
        auto work = sum(*ranks[0], tensor);
        ASSERT_TRUE(work);
        (*work)->on_done([&] { ++callbacks; });
        works.push_back(*std::move(work));
    }
    ranks[0].reset();
    EXPECT_EQ(callbacks, works.size());
    for (const comm::Handle& work : works) {
        ASSERT_TRUE(work->done());
        const auto outcome = work->outcome();
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().reason, Reason::closed);
    }
}

TEST(Departure, OfAnAbortedCommunicatorEndsAccessToItsMemory) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)});
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 2U);
    {
        auto mine = std::make_unique<std::vector<float>>(several_windows * 20, 1.0F);
        auto work = sum(*ranks[0], *mine);
        ASSERT_TRUE(work);
        std::vector<float> other(several_windows * 20, 1.0F);
        auto others = sum(*ranks[1], other);
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
        const Error error = error_of(sum(*ranks[rank], values, net::now() + seconds(1)));
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
    auto work = sum(*ranks[0], values, net::now() + seconds(3));  // before the hold time of the switch is over
    ASSERT_TRUE(work);
    std::this_thread::sleep_for(seconds(1));  // in this time the switch reports the missing rank to this rank
    node->stop();
    const Error error = error_of(work);
    EXPECT_EQ(error.reason, Reason::timed_out);
    EXPECT_EQ(error.peer, address_of(*node));
    EXPECT_TRUE(says(error, "nothing from the switch"));
}

TEST(LateRank, TimesOutWithItsNumber) {
    const auto node = start(small_switch());
    Job job(3, {address_of(*node)});
    const auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 3U);
    each(2, [&](std::uint32_t rank) {
        std::vector<float> values(several_windows, 1.0F);
        const Error error = error_of(sum(*ranks[rank], values, net::now() + seconds(1)));
        EXPECT_EQ(error.reason, Reason::timed_out);
        EXPECT_EQ(error.peer, "rank 2");
    });
}

// ------------------------------------------------------------------------------------------------------------- Returns

// Restarts a switch at the same address.
std::unique_ptr<switchd::SwitchNode> restart(std::unique_ptr<switchd::SwitchNode> node) {
    switchd::SwitchNodeConfig config = node->config();
    config.udp.local = node->address();
    node.reset();
    return start(config);
}

class LeafRestart : public testing::TestWithParam<std::uint32_t> {};

TEST_P(LeafRestart, DelaysSumsAndChangesNone) {
    switchd::SwitchNodeConfig leaf = small_switch();
    leaf.shards = GetParam();
    TwoLevels fabric(small_switch(), leaf);
    comm::Options options = small_options();
    options.channels = GetParam();
    Job job(4, {address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}, options);
    std::atomic<std::uint32_t> rounds{0};
    std::atomic<bool> back{false};
    std::jthread operator_of_switches([&] {
        // Wait until members repeat their JOINs at the slow rate only.
        std::this_thread::sleep_for(milliseconds(200));
        if (!eventually([&] { return rounds > 40; })) return;
        fabric.leaves[1] = restart(std::move(fabric.leaves[1]));
        back = true;
    });
    std::atomic<std::uint32_t> last{~0U};
    job.run([&](comm::Communicator& communicator) {
        for (std::uint32_t round = 0; round < last; ++round) {
            expect_sum(communicator, several_windows, round);
            ++rounds;
            // All ranks must stop after the same round: rank 0 chooses a round that no rank has reached.
            if (communicator.rank() == 0 && back && last == ~0U) last = round + 20;
            if (testing::Test::HasFailure()) return;
        }
    });
    EXPECT_TRUE(back);
}

// Also with several threads, which use other ports after the restart.
INSTANTIATE_TEST_SUITE_P(Failure, LeafRestart, testing::Values(1, 3));

TEST(Reforming, IsRequestedAfterARestartOfTheServers) {
    for (const bool two_levels : {false, true}) {
        TwoLevels fabric;
        const std::vector<std::string> switches =
            two_levels ? std::vector{address_of(*fabric.leaves[0]), address_of(*fabric.leaves[1])}
                       : std::vector{address_of(*fabric.root)};
        Job job(2, switches);
        auto ranks = job.formed();
        ASSERT_EQ(ranks.size(), 2U);
        each(2, [&](std::uint32_t rank) {
            std::vector<float> values(10, 1.0F);
            EXPECT_TRUE(succeeds(sum(*ranks[rank], values)));
        });
        std::vector<float> pending(several_windows, 1.0F);
        const auto work = sum(*ranks[0], pending);
        fabric.root = restart(std::move(fabric.root));
        ASSERT_NE(fabric.root, nullptr);
        const Error error = error_of(work);
        EXPECT_EQ(error.reason, Reason::rejected) << to_string(error);
        EXPECT_TRUE(says(error, "form again"));
        // The other rank may know of the failure before it submits.
        std::vector<float> late(several_windows, 1.0F);
        EXPECT_TRUE(says(error_of(sum(*ranks[1], late)), "form again"));
        ranks.clear();
        job.options().generation = 1;
        job.run([](comm::Communicator& communicator) { expect_sum(communicator, several_windows, 5); });
    }
}

TEST(Reforming, WithoutALostRankFormsASmallerWorld) {
    const auto node = start(small_switch());
    Job job(3, {address_of(*node)});
    auto ranks = job.formed();
    ASSERT_EQ(ranks.size(), 3U);
    ranks[2].reset();
    each(2, [&](std::uint32_t rank) {
        std::vector<float> values(10, 1.0F);
        EXPECT_TRUE(says(error_of(sum(*ranks[rank], values)), "rank 2"));
    });
    ranks.clear();
    each(2, [&](std::uint32_t rank) {
        comm::Options options = job.options_of(rank);
        options.generation = 1;
        const auto formed = comm::Communicator::form(job.store(), rank, 2, options);
        ASSERT_TRUE(formed) << to_string(formed.error());
        expect_sum(**formed, several_windows, 9);
    });
}

}  // namespace
}  // namespace atp::test
