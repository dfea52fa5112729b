// SPDX-License-Identifier: Apache-2.0
// How ranks form a communicator, and why they cannot. tests/e2e/formation_test.cc has what switches refuse.
#include "comm/formation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/option_table.h"
#include "control/formation_rounds.h"
#include "fabric.h"
#include "net/clock.h"
#include "relay.h"
#include "support/fails.h"
#include "values.h"

namespace atp::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Time patiently() { return net::now() + longest_wait; }

// ------------------------------------------------------------------------------------------------ Before the network

// Rank 0 of a job of two, and rank 1, with one store.
struct Two {
    store::MemoryStore store;
    store::Rendezvous zero{store, {.prefix = "job", .rank = 0, .world = 2}};
    store::Rendezvous one{store, {.prefix = "job", .rank = 1, .world = 2}};
};

// What a rank is offered, and which address it then takes.
comm::Options taking(const std::string& address, std::string& offered) {
    comm::Options options;
    options.use_network = [&offered, address](comm::Options& own, const std::string& by_rank_0) -> Result<void> {
        offered = by_rank_0;
        own.switch_address = address;
        return {};
    };
    return options;
}

TEST(PrepareNetwork, RanksAreOfferedTheSwitchThatRankZeroStarts) {
    Two job;
    std::string offered = "not called";
    const wire::RankFacts first{.starts_switch = true};
    comm::Options zero = taking("10.0.0.1:9", offered);
    ASSERT_TRUE(comm::prepare_network(job.zero, first, zero, patiently()));
    EXPECT_EQ(offered, "");
    comm::Options one = taking("10.0.0.2:9", offered);
    ASSERT_TRUE(comm::prepare_network(job.one, first, one, patiently()));
    EXPECT_EQ(offered, "10.0.0.1:9");
    EXPECT_EQ(one.switch_address, "10.0.0.2:9") << "it may have one of its own";
}

TEST(PrepareNetwork, WithoutSuchASwitchTheOneThatRankZeroNamesIsOffered) {
    Two job;
    std::string offered;
    for (store::Rendezvous* const rank : {&job.zero, &job.one}) {
        comm::Options options = taking("10.0.0.2:9", offered);
        ASSERT_TRUE(comm::prepare_network(*rank, {.switch_address = "10.0.0.1:9"}, options, never));
        EXPECT_EQ(offered, "10.0.0.1:9");
    }
    comm::Options plain;
    EXPECT_TRUE(comm::prepare_network(job.one, {.switch_address = "10.0.0.1:9"}, plain, never));
    EXPECT_EQ(plain.switch_address, "") << "the options name the network";
}

TEST(PrepareNetwork, FailureOfTheCallerOrOfTheAddressEndsTheFormation) {
    Two job;
    std::string offered;
    comm::Options unusable = taking("nowhere", offered);
    const auto unread = comm::prepare_network(job.zero, {.starts_switch = true}, unusable, never);
    EXPECT_TRUE(fails(unread, {.reason = Reason::malformed}));
    comm::Options failing;
    failing.use_network = [](comm::Options&, const std::string&) -> Result<void> {
        return fail(Operation::open, Reason::denied, {}, "no switch may start");
    };
    EXPECT_TRUE(fails(comm::prepare_network(job.zero, {}, failing, never), {.text = "no switch may start"}));
    comm::Options late;
    const auto missing = comm::prepare_network(job.one, {.starts_switch = true}, late, net::now());
    EXPECT_TRUE(fails(missing, {.text = HasSubstr("'switch': rank 0 of 2 did not arrive")}));
}

TEST(FindEachOther, DedicatedServersMustBeNamedAndHaveAddresses) {
    Two job;
    comm::Meeting meeting;
    meeting.facts.resize(2);
    meeting.groups = control::group_by_host(meeting.facts);
    comm::Options options;
    options.server = comm::ServerPlace::dedicated;
    const auto unnamed = comm::form_over_network(job.zero, options, meeting, nullptr, never);
    EXPECT_TRUE(fails(unnamed, {.text = HasSubstr("the list of dedicated servers is empty")}));
    options.dedicated_servers = {"127.0.0.1:4790", "nobody.invalid:4790"};
    EXPECT_TRUE(
        fails(comm::form_over_network(job.zero, options, meeting, nullptr, never), {.reason = Reason::unknown_name}));
}

// As rank 0 of two. A switch notices within a second that its parent changed: rank 1 sees another root at first.
Result<comm::Formed> form_beside_another_root(std::uint32_t channels) {
    const auto node = start(small_switch());
    Two job;
    comm::Meeting meeting;
    meeting.facts.resize(2);
    meeting.groups = control::group_by_host(meeting.facts);
    comm::Options options = small_options();
    options.channels = channels;
    options.switch_address = address_of(*node);
    const std::jthread other([&] {
        const auto leave = [&](std::string_view round, std::uint64_t root) {
            const wire::NetworkFacts seen{.path = {{.id = root, .aggregators = 9, .lanes = 64}}, .lanes = 64};
            const auto all = job.one.exchange(round, seen, {0, 1}, patiently(), wire::decode<wire::NetworkFacts>);
            EXPECT_TRUE(all) << to_string(all.error());
            return all ? all->front().path.front().id : 0;
        };
        const std::uint64_t root = leave(control::rounds_network[0], 1);
        EXPECT_EQ(leave(control::rounds_network[1], root), root);
    });
    return comm::form_over_network(job.zero, options, meeting, nullptr, patiently());
}

TEST(FindEachOther, RanksThatSeeDifferentRootsAskTheirSwitchesAgain) {
    const auto formed = form_beside_another_root(1);
    ASSERT_TRUE(formed) << to_string(formed.error());
    EXPECT_EQ(formed->plan.units, 1U);
    EXPECT_EQ(formed->channels.size(), 2U) << "one, and one for all-gathers";
}

TEST(FindEachOther, ChannelsOfAJobShareTheFirstWindow) {
    const auto formed = form_beside_another_root(3);
    ASSERT_TRUE(formed) << to_string(formed.error());
    EXPECT_EQ(formed->channels.size(), 6U);
    for (const comm::ChannelPlan& channel : formed->channels) {
        EXPECT_EQ(channel.machine.worker.congestion.channels, 3U) << "gathers use theirs when sums are done";
        EXPECT_EQ(channel.machine.worker.congestion.initial_packets, 0U);
    }
}

// ------------------------------------------------------------------------------------------------- Whole formations

TEST(Formation, MissingRankTimesOutWithItsNumber) {
    const auto node = start(small_switch());
    comm::Options options = small_options();
    options.join_timeout = milliseconds(500);
    Job job(3, {address_of(*node)}, options);
    each(2, [&](std::uint32_t rank) {
        const auto formed = job.form(rank);
        ASSERT_TRUE(fails(formed, {.reason = Reason::timed_out, .printed = HasSubstr("2")}));
        EXPECT_GT(formed.error().elapsed, Duration::zero());
    });
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
            ASSERT_TRUE(fails(formed, {.reason = Reason::timed_out, .printed = HasSubstr(nowhere)}));
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

TEST(Formation, InvalidRankWorldOrOptionIsRefused) {
    struct Row {
        std::uint32_t rank, world;
        std::string option, value, text;
    };
    const std::vector<Row> rows{
        {0, 0, "rack", "", "world is 0 ranks; use 1 to 1024"},
        {0, 1025, "rack", "", "world is 1025 ranks; use 1 to 1024"},
        {2, 2, "rack", "", "rank 2 is out of range; a world of 2 ranks counts from 0"},
        {0, 1, "rack", std::string(256, 'r'), "rack has 256 bytes; use at most 255"},
        {0, 1, "switch_address", "", "no switch is named, and not all ranks share one memory"},
        {0, 1, "switch_address", "host", "parse host: malformed: the port is missing"},
    };
    store::MemoryStore store;
    for (const Row& row : rows) {
        comm::Options options = small_options();
        options.switch_address = "127.0.0.1:1";
        options.generation = static_cast<std::uint32_t>(&row - rows.data());
        ASSERT_TRUE(comm::set_option(options, row.option, row.value));
        const auto formed = comm::Communicator::form(store, row.rank, row.world, options);
        EXPECT_TRUE(fails(formed, {.reason = Reason::malformed, .printed = HasSubstr(row.text)}));
    }
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
    std::vector<std::string> missing;
    EXPECT_TRUE(eventually([&] { return !(missing = ranks[0]->missing_features()).empty(); }));
    for (const std::string_view buffer : {"receive-buffer: ", "send-buffer: "}) {
        const auto is_of = [buffer](const std::string& text) { return text.starts_with(buffer); };
        EXPECT_EQ(std::ranges::count_if(missing, is_of), 1) << "once for any number of channels";
    }
}

TEST(Formation, DifferentOptionsAreMismatchedByName) {
    const auto node = start(small_switch());
    Job job(2, {address_of(*node)});
    each(2, [&](std::uint32_t rank) {
        comm::Options options = job.options_of(rank);
        options.window = rank == 0 ? 16 : 32;
        const auto formed = comm::Communicator::form(job.store(), rank, 2, options);
        ASSERT_TRUE(fails(formed, {.reason = Reason::mismatched, .printed = HasSubstr("window=16")}));
        EXPECT_TRUE(says(formed.error(), "window=32"));
    });
}

}  // namespace
}  // namespace atp::test
