// SPDX-License-Identifier: Apache-2.0
// Who makes room when the tables or the memory of a switch are full.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/ticket.h"
#include "join_tree_fixture.h"

namespace atp::control {
namespace {

using std::chrono::seconds;

constexpr std::uint32_t honest_job = 1000;

wire::Join of_job(std::uint32_t number, wire::Join join) {
    join.terms.job = number;
    return join;
}
ChannelKey key_of_job(std::uint32_t number) { return {number, token, channel}; }

// A switch that started long ago, so that it keeps no places for jobs from before.
struct OldSwitch : Tree {
    explicit OldSwitch(const JoinTreeConfig& config) : Tree(config) {
        join(join_of_member(0, 2, 0), worker(99));
        leave(0, 0, worker(99));
        pass(config.hold);
        forget();
    }
    // Jobs of one member each, from 1.
    void fill(std::uint32_t jobs, const wire::Address& hog) {
        for (std::uint32_t number = 1; number <= jobs; ++number) join(of_job(number, join_of_member(0, 1, 0)), hog);
    }
    // Jobs of two members, which join again each second meanwhile.
    void keep(std::uint32_t jobs, Duration time, bool with_results) {
        for (const Time end = now + time; now < end; pass(seconds(1))) {
            for (std::uint32_t number = 1; number <= jobs; ++number) {
                for (unsigned rank = 0; rank < 2; ++rank) {
                    join(of_job(number, join_of_member(0, 2, rank)), worker(rank));
                }
                if (with_results) tree.find(key_of_job(number))->active_at = now;
            }
        }
    }
};

JoinTreeConfig with_jobs(std::uint32_t jobs) {
    JoinTreeConfig config;
    config.jobs = jobs;
    return config;
}

TEST(JoinShares, DrainingSwitchSaysWhyItRefuses) {
    JoinTreeConfig config = with_jobs(8);
    config.room = std::make_shared<SwitchRoom>(8, 8);
    OldSwitch star(config);
    star.join(of_job(1, join_of_member(0, 2, 0)), worker(1));
    config.room->drain(true);
    star.join(of_job(2, join_of_member(0, 2, 0)), worker(2));
    star.expect_refused(worker(2), Refusal::full, "takes no new job");
    star.join(of_job(1, join_of_member(0, 2, 1)), worker(3));
    EXPECT_EQ(star.tree.find(key_of_job(1))->present, 0x3U) << "a member of a job that has a place";
}

TEST(JoinShares, H98_HostWithAllPlacesMakesRoomForAnother) {
    OldSwitch star(with_jobs(64));
    star.fill(64, worker(1));
    ASSERT_EQ(star.tree.channels(), 64U);
    star.join(of_job(honest_job, join_of_member(0, 2, 0)), worker(2));
    star.expect_refused(worker(1), Refusal::full, "more than its share");
    EXPECT_EQ(star.tree.find(key_of_job(64)), nullptr) << "the newest";
    EXPECT_NE(star.tree.find(key_of_job(honest_job)), nullptr);
    star.join(of_job(64, join_of_member(0, 1, 0)), worker(1));
    EXPECT_EQ(star.tree.find(key_of_job(64)), nullptr) << "it does not come back at once";
}

TEST(JoinShares, HogNeverEndsTheJobsOfHostsWithinTheirShare) {
    OldSwitch star(with_jobs(16));
    star.fill(2, worker(1));
    for (std::uint32_t number = 100; number < 200; ++number) {
        star.join(of_job(number, join_of_member(0, 1, 0)), worker(2));
    }
    EXPECT_EQ(star.tree.channels(), 16U);
    for (const std::uint32_t number : {1U, 2U}) EXPECT_NE(star.tree.find(key_of_job(number)), nullptr);
    EXPECT_EQ(star.sent_to<wire::Refused>(worker(1)).size(), 0U);
}

TEST(JoinShares, H98_CompleteJobsOfTwoHostsAreNotEndedWhileTheyGetResults) {
    OldSwitch star(with_jobs(4));
    star.keep(4, seconds(40), true);
    star.join(of_job(honest_job, join_of_member(0, 2, 0)), worker(5));
    star.expect_refused(worker(5), Refusal::full, "--jobs");
    EXPECT_EQ(star.tree.channels(), 4U);
    star.keep(4, seconds(31), false);
    star.join(of_job(honest_job, join_of_member(0, 2, 0)), worker(5));
    EXPECT_NE(star.tree.find(key_of_job(honest_job)), nullptr);
    EXPECT_EQ(star.sent_to<wire::Refused>(worker(0)).size(), 1U);
    EXPECT_EQ(star.sent_to<wire::Refused>(worker(1)).size(), 1U);
}

TEST(JoinShares, H98_MemoryForServersIsSharedLikeTheTables) {
    JoinTreeConfig config;
    const std::uint64_t one = server_bytes_of(terms_of(1));
    config.server_bytes = 16 * one;
    OldSwitch star(config);
    star.fill(16, worker(1));
    EXPECT_EQ(star.tree.memory().used(), 16 * one);
    star.join(of_job(honest_job, join_of_member(0, 2, 0)), worker(2));
    EXPECT_EQ(star.tree.channels(), 17U) << "a job without all its members ends no other";
    star.join(of_job(honest_job, join_of_member(0, 2, 1)), worker(3));
    star.expect_refused(worker(1), Refusal::full, "memory");
    ASSERT_NE(star.tree.find(key_of_job(honest_job)), nullptr);
    EXPECT_TRUE(star.tree.find(key_of_job(honest_job))->ready());
    EXPECT_EQ(star.tree.find(key_of_job(16)), nullptr);
    star.forget();
    star.join(of_job(17, join_of_member(0, 1, 0)), worker(1));
    EXPECT_EQ(star.sent_to<wire::Refused>(worker(1)).size(), 1U) << "it ends no job of its own, nor another's";
    EXPECT_EQ(star.tree.memory().used(), 16 * one);
}

TEST(JoinShares, ShardsOfOneSwitchEndOneAnothersJobs) {
    JoinTreeConfig config = with_jobs(8);
    config.room = std::make_shared<SwitchRoom>(8, 100);
    OldSwitch first(config);
    OldSwitch second(config);
    first.fill(8, worker(1));
    second.join(of_job(honest_job, join_of_member(0, 2, 0)), worker(2));
    EXPECT_EQ(second.tree.channels(), 0U) << "its place is not free yet";
    EXPECT_EQ(second.sent_to<wire::Refused>(worker(2)).size(), 0U) << "so it repeats its JOIN";
    first.pass(std::chrono::milliseconds(500));
    EXPECT_EQ(first.tree.channels(), 7U);
    second.join(of_job(honest_job, join_of_member(0, 2, 0)), worker(2));
    EXPECT_EQ(second.tree.channels(), 1U);
}

// Ranks of 4 hosts with 8 ranks each, as a mesh of 4 x 2 x 4: each rank is in one group for each direction, and in one
// of all. The ranks of the first host come first, so all of its groups count for it.
TEST(JoinShares, MeshOfGroupsOnHostsOfEightRanksFormsWithDefaultLimits) {
    struct Group {
        std::uint32_t number = 0;
        std::vector<unsigned> ranks;
    };
    std::vector<Group> groups;
    const auto add = [&](unsigned count, unsigned members, auto rank_of) {
        for (unsigned group = 0; group < count; ++group) {
            groups.push_back({.number = static_cast<std::uint32_t>(groups.size() + 1), .ranks = {}});
            for (unsigned member = 0; member < members; ++member) groups.back().ranks.push_back(rank_of(group, member));
        }
    };
    add(1, 32, [](unsigned, unsigned member) { return member; });
    add(8, 4, [](unsigned group, unsigned member) { return member * 8 + group; });
    add(16, 2, [](unsigned group, unsigned member) { return group / 4 * 8 + member * 4 + group % 4; });
    add(8, 4, [](unsigned group, unsigned member) { return group * 4 + member; });
    const auto address = [](unsigned rank) {
        return host(1 + rank / 8).with_port(static_cast<std::uint16_t>(5000 + rank));
    };

    Tree star(JoinTreeConfig{});
    const auto all_ready = [&] {
        return std::ranges::all_of(groups, [&](const Group& group) {
            const Branch* const branch = star.tree.find(key_of_job(group.number));
            return branch != nullptr && branch->ready();
        });
    };
    unsigned rounds = 0;
    for (; rounds < 100 && !all_ready(); ++rounds) {
        for (unsigned rank = 0; rank < 32; ++rank) {
            for (const Group& group : groups) {
                const auto place = std::ranges::find(group.ranks, rank);
                if (place == group.ranks.end()) continue;
                const auto member = static_cast<unsigned>(place - group.ranks.begin());
                const auto members = static_cast<unsigned>(group.ranks.size());
                star.join(of_job(group.number, but(join_of_member(0, 2, 0),
                                                   [&](wire::Join& join) {
                                                       join.units.front().mask0 =
                                                           members == 32 ? ~0U : (1U << members) - 1;
                                                       join.units.front().members = 1U << member;
                                                       join.units.front().ranks = {static_cast<std::uint16_t>(member)};
                                                   })),
                          address(rank));
            }
        }
        star.pass(timing.hurry);
    }
    EXPECT_TRUE(all_ready());
    EXPECT_LE(rounds * timing.hurry, 2 * JoinTreeConfig{}.hold);
    EXPECT_EQ(star.tree.counters().refused, 0U);
}

// --- after a restart

// A worker's JOIN of a job whose server is elsewhere, after it was ready.
wire::Join with_server(std::uint32_t number, const Ticket& ticket) {
    return but(begun(of_job(number, join_of_member(0, 1, 0))), [&](wire::Join& join) {
        join.terms.server = endpoint_of(host(50));
        join.ticket = ticket;
    });
}

TEST(JoinShares, H69_JobsThatOnlySayThatTheyRanBeforeCountAsNew) {
    JoinTreeConfig config = with_jobs(64);
    config.ticket_key = {3, 4};
    Tree star(config);
    for (std::uint32_t number = 1; number <= 64; ++number) star.join(with_server(number, {}), worker(1));
    EXPECT_EQ(star.tree.channels(), 32U);
    EXPECT_EQ(star.tree.counters().refused, 0U) << "they repeat their JOINs";
    const ChannelKey honest = key_of_job(honest_job);
    star.join(with_server(honest_job, ticket_of({3, 5}, honest)), worker(2));
    EXPECT_EQ(star.tree.find(honest), nullptr) << "a ticket of another key";
    star.join(with_server(honest_job, ticket_of({3, 4}, key_of_job(honest_job + 1))), worker(2));
    EXPECT_EQ(star.tree.find(honest), nullptr) << "a ticket of another job";
    star.join(with_server(honest_job, ticket_of({3, 4}, honest)), worker(2));
    EXPECT_NE(star.tree.find(honest), nullptr);
}

TEST(JoinShares, MembersGetATicketWhenTheTreeIsReadyAndTheGroupNever) {
    JoinTreeConfig config;
    config.ticket_key = {3, 4};
    config.groups = *parse_ranges("239.0.0.0/8");
    Tree star(config);
    const auto in_group = [](wire::Join& join) {
        join.terms.group = endpoint_of(*wire::Address::parse("239.1.2.3:4792"));
    };
    star.join(but(join_of_member(0, 2, 0), in_group), worker(0));
    EXPECT_EQ(star.sent_to<wire::Joined>(worker(0)).back().ticket, Ticket{});
    star.join(but(join_of_member(0, 2, 1), in_group), worker(1));
    EXPECT_EQ(star.sent_to<wire::Joined>(worker(0)).back().ticket, ticket_of({3, 4}, key));
    const auto to_group = star.sent_to<wire::Joined>(*wire::Address::parse("239.1.2.3:4792"));
    ASSERT_FALSE(to_group.empty());
    for (const wire::Joined& joined : to_group) EXPECT_EQ(joined.ticket, Ticket{});
}

TEST(JoinShares, LeafShowsTheTicketOfItsParentAfterTheParentRestarted) {
    Tree leaf(JoinTreeConfig{.parent = host(1)});
    leaf.join(join_of_member(0, 1, 0, 0, 0x3), worker(0));
    Ticket ticket{};
    ticket[3] = std::byte{7};
    const Branch& branch = *leaf.tree.find(key);
    leaf.tree.handle_joined({.nonce = branch.up_nonce,
                             .job = job,
                             .token = token,
                             .channel = channel,
                             .epoch = branch.up_epoch,
                             .number = 1,
                             .ready = true,
                             .ticket = ticket},
                            host(1), leaf.now);
    leaf.drain();
    leaf.pass(seconds(1));
    EXPECT_EQ(leaf.sent_to<wire::Join>(host(1)).back().ticket, ticket);
}

// --- members that leave

TEST(JoinShares, LeavingAndJoiningInALoopSwitchesNoProtectionOff) {
    OldSwitch star(JoinTreeConfig{});
    star.join(join_of_member(0, 2, 0), worker(0));
    const auto loop = [&](std::uint32_t number) {
        star.join(but(of_job(500, join_of_member(0, 2, 0)), [&](auto& join) { join.terms.token = number; }), worker(1));
        star.tree.handle_leave({.job = 500, .token = number, .channel = channel, .epoch = 0x7FFFFFFF}, worker(1),
                               star.now);
        star.drain();
        star.forget();
    };
    for (std::uint32_t number = 1; number <= Departures::most_of_host; ++number) loop(number);
    star.tree.handle_join(but(join_of_member(0, 2, 1), [](auto& join) { join.epoch = 1; }), worker(1), star.now);
    star.drain();
    EXPECT_EQ(star.tree.find(key)->at({.bit = 1}), nullptr) << "its host takes no empty position now";
    star.tree.handle_leave({.job = job, .token = token, .channel = channel, .epoch = 0x7FFFFFFF}, worker(0), star.now);
    star.tree.handle_join(but(join_of_member(0, 2, 0), [](auto& join) { join.epoch = 0x7FFFFFFF; }), worker(0),
                          star.now);
    star.drain();
    EXPECT_EQ(star.tree.find(key), nullptr) << "the JOIN from before does not bring it back";
    const wire::Join of_another = but(of_job(501, join_of_member(0, 2, 1)), [](auto& join) { join.epoch = 1; });
    star.tree.handle_join(of_another, worker(2), star.now);
    star.drain();
    EXPECT_NE(star.tree.find(key_of(of_another)), nullptr) << "others join";
    star.pass(JoinTreeConfig{}.hold);
    star.join(join_of_member(0, 2, 1), worker(1));
    EXPECT_NE(star.tree.find(key), nullptr);
}

}  // namespace
}  // namespace atp::control
