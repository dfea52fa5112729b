// SPDX-License-Identifier: Apache-2.0
// A communicator that cannot form ends on every rank in time, with an error that names the next step.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric.h"
#include "relay.h"
#include "values.h"

namespace atp::test {
namespace {

using std::chrono::milliseconds;

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
        Job job(2, {address_of(*node)});
        each(2, [&](std::uint32_t rank) {
            comm::Options options = job.options_of(rank);
            options.join_timeout = rank == lost ? milliseconds(300) : longest_wait;
            if (rank == lost) options.switch_address = nowhere;
            const auto formed = comm::Communicator::form(job.store(), rank, 2, options);
            ASSERT_FALSE(formed);
            EXPECT_EQ(formed.error().reason, Reason::timed_out);
            EXPECT_TRUE(says(formed.error(), nowhere));
            if (rank == lost) return;
            EXPECT_EQ(formed.error().peer, "rank " + std::to_string(lost));
            EXPECT_TRUE(says(formed.error(), "gave up"));
        });
    }
}

// Counts the rounds of one rank: how often it waits for values of others.
class CountingStore final : public store::Store {
  public:
    explicit CountingStore(store::Store& inner) : inner_(inner) {}

    Result<void> set(std::string_view key, std::string_view value) override { return inner_.set(key, value); }
    Result<std::int64_t> add(std::string_view key, std::int64_t delta) override { return inner_.add(key, delta); }
    Result<void> wait(std::span<const std::string> keys, Time deadline) override { return inner_.wait(keys, deadline); }
    Result<std::vector<std::string>> get_all(std::span<const std::string> keys, Time deadline) override {
        if (!keys.front().ends_with("/gave-up")) ++rounds;
        return inner_.get_all(keys, deadline);
    }
    Result<std::vector<std::string>> missing(std::span<const std::string> keys) override {
        return inner_.missing(keys);
    }
    Result<std::size_t> remove(std::string_view prefix) override { return inner_.remove(prefix); }
    void close() noexcept override { inner_.close(); }

    std::atomic<unsigned> rounds{0};

  private:
    store::Store& inner_;
};

void expect_rounds(unsigned rounds, std::uint32_t ranks_per_host, const std::string& switch_address) {
    constexpr std::uint32_t world = 4;
    store::MemoryStore shared;
    std::vector<std::unique_ptr<comm::Communicator>> formed(world);
    each(world, [&](std::uint32_t rank) {
        comm::Options options = small_options();
        const std::uint32_t host = rank / ranks_per_host;
        options.host_level = true;
        options.host_name = "host " + std::to_string(host);
        options.switch_address = switch_address;
        if (switch_address.empty()) options.listen = "127.0.0." + std::to_string(2 + host) + ":0";
        CountingStore store(shared);
        auto communicator = comm::Communicator::form(store, rank, world, options);
        ASSERT_TRUE(communicator) << to_string(communicator.error());
        EXPECT_TRUE(succeeds((*communicator)->barrier()));
        const bool speaks = rank % ranks_per_host == 0;
        EXPECT_TRUE(!speaks || store.rounds == rounds) << "rank " << rank << ": " << store.rounds;
        EXPECT_LE(store.rounds, rounds);
        formed[rank] = *std::move(communicator);
    });
}

TEST(Formation, RanksMeetInFewRounds) {
    const auto node = start(small_switch());
    expect_rounds(2, 1, address_of(*node));
    expect_rounds(4, 1, "");
    expect_rounds(3, 2, address_of(*node));
    expect_rounds(5, 2, "");  // and the other ranks of a host read the plan, in place of three rounds
    expect_rounds(2, 4, "");
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

void expect_rejected(const Job::Formed& formed, const std::vector<std::string_view>& texts) {
    ASSERT_FALSE(formed);
    EXPECT_EQ(formed.error().reason, Reason::rejected);
    for (const std::string_view text : texts) EXPECT_TRUE(says(formed.error(), text));
}

TEST(Formation, FullTableOfJobsIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.jobs = 1;
    const auto node = start(config);
    Job first(1, {address_of(*node)});
    const auto ranks = first.formed();
    expect_rejected(Job(1, {address_of(*node)}).form(0), {"table of jobs is full (1)", "--jobs"});
}

TEST(Formation, FullTableOfChannelsIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.channels = 2;
    const auto node = start(config);
    comm::Options options = small_options();
    options.channels = 3;
    expect_rejected(Job(1, {address_of(*node)}, options).form(0), {"table of channels is full (2)"});
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
    expect_rejected(Job(1, {address_of(*node)}).form(0), {"table of jobs is full (8)"});
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
    expect_rejected(Job(1, {address_of(*node)}, options).form(0), {"table of channels is full (9)"});
    options.channels = 1;
    EXPECT_TRUE(eventually([&] { return Job(1, {address_of(*node)}, options).form(0).has_value(); }));
}

TEST(Formation, FullServerMemoryIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.server_bytes = 1000;
    const auto node = start(config);
    expect_rejected(Job(1, {address_of(*node)}).form(0), {"--server-memory"});
}

TEST(Formation, SwitchThatHostsNoServersIsReported) {
    switchd::SwitchNodeConfig config = small_switch();
    config.server_bytes = 0;
    const auto node = start(config);
    expect_rejected(Job(1, {address_of(*node)}).form(0), {"colocated or dedicated"});
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

}  // namespace
}  // namespace atp::test
