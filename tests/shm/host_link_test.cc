// SPDX-License-Identifier: Apache-2.0
#include "shm/host_link.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "net/clock.h"
#include "other_users.h"
#include "shm/unix_socket.h"
#include "support/fails.h"

namespace atp::shm {
namespace {

constexpr Secret secret{1, 2};
constexpr Secret other_secret{1, 3};
constexpr HostShape shape{.ranks = 2, .slots = 1, .chunk_lanes = 64};
constexpr Duration longest_wait = std::chrono::seconds(20);

std::vector<std::byte> greeting_of(std::uint64_t rank, const Secret& shown) {
    const std::array<std::uint64_t, 4> words{0x4154502d484f5354, rank, shown[0], shown[1]};
    const auto bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
}

Time soon() { return net::now() + longest_wait; }

TEST(HostLink, RanksSeeOneMemory) {
    auto listening = HostLink::listen();
    ASSERT_TRUE(listening);
    std::jthread rank1([name = listening->name()] {
        auto link = HostLink::connect(name, 1, secret);
        ASSERT_TRUE(link);
        const auto memory = link->adopt(shape, 1, secret, soon());
        ASSERT_TRUE(memory) << to_string(memory.error());
        (*memory)->lanes_of(0, 1)[5] = std::byte{9};
        (*memory)->state_call(0, 77, "barrier");
        EXPECT_EQ((*memory)->arrive(0), 1U);
    });
    const auto memory = listening->share(shape, secret, soon());
    ASSERT_TRUE(memory) << to_string(memory.error());
    rank1.join();
    EXPECT_EQ((*memory)->lanes_of(0, 1)[5], std::byte{9});
    EXPECT_EQ((*memory)->call_of(0, 1), "barrier");
    EXPECT_EQ((*memory)->ranks_without(0), std::vector<unsigned>{0});
    EXPECT_EQ((*memory)->process_of(1), static_cast<std::uint32_t>(getpid()));
}

// docs/spec/hazards.md#h41
TEST(HostLink, H41_StrangersAreIgnored) {
    auto listening = HostLink::listen();
    ASSERT_TRUE(listening);
    const auto silent = connect_to(listening->name());
    const auto wrong = HostLink::connect(listening->name(), 1, other_secret);
    const auto out_of_range = HostLink::connect(listening->name(), 2, secret);
    ASSERT_TRUE(silent && wrong && out_of_range);
    std::jthread rank1([name = listening->name()] {
        auto link = HostLink::connect(name, 1, secret);
        ASSERT_TRUE(link);
        EXPECT_TRUE(link->adopt(shape, 1, secret, soon()));
    });
    EXPECT_TRUE(listening->share(shape, secret, soon()));
}

// docs/spec/hazards.md#h41
TEST(HostLink, H41_ManySilentStrangersDelayNoRank) {
    auto listening = HostLink::listen();
    ASSERT_TRUE(listening);
    constexpr int strangers = 200;
    std::vector<net::Descriptor> silent;
    for (int i = 0; i < strangers; ++i) {
        auto connected = connect_to(listening->name());
        ASSERT_TRUE(connected);
        silent.push_back(*std::move(connected));
    }
    std::jthread rank1([name = listening->name()] {
        auto link = HostLink::connect(name, 1, secret);
        ASSERT_TRUE(link);
        EXPECT_TRUE(link->adopt(shape, 1, secret, soon()));
    });
    EXPECT_TRUE(listening->share(shape, secret, soon()));
}

// On a busy host, a process may not run between its connection and its greeting.
TEST(HostLink, RankThatGreetsLateIsHeard) {
    auto listening = HostLink::listen();
    ASSERT_TRUE(listening);
    const auto late = connect_to(listening->name());
    const auto next = connect_to(listening->name());
    ASSERT_TRUE(late && next);
    std::jthread rank0([&] { EXPECT_TRUE(listening->share(shape, secret, soon())); });
    // Rank 0 hears connections in their order, and closes the second one.
    ASSERT_TRUE(send_all(*next, greeting_of(1, other_secret)));
    std::byte first{};
    EXPECT_TRUE(fails(receive_all(*next, {&first, 1}, soon()), {.reason = Reason::closed}));
    ASSERT_TRUE(send_all(*late, greeting_of(1, secret)));
    auto descriptor = receive_descriptor(*late, soon());
    ASSERT_TRUE(descriptor);
    auto shared = SharedMemory::adopt(*std::move(descriptor), shape.bytes());
    ASSERT_TRUE(shared);
    HostMemory memory(*std::move(shared), shape, 1);
    memory.answer(secret[0] ^ (secret[1] * 2), 1);
    EXPECT_TRUE(send_all(*late, {&first, 1}));
}

TEST(HostLink, RankWaitsWhileStrangersFillTheQueue) {
    constexpr rlim_t most_descriptors = 8192;
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    if (before.rlim_max < most_descriptors) GTEST_SKIP() << "a process may have " << before.rlim_max << " descriptors";
    const rlimit many{.rlim_cur = most_descriptors, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &many), 0);
    auto listening = HostLink::listen();
    ASSERT_TRUE(listening);
    std::vector<net::Descriptor> silent;
    while (silent.size() < most_descriptors) {
        auto connected = connect_to(listening->name());
        if (!connected) break;
        silent.push_back(*std::move(connected));
    }
    EXPECT_TRUE(fails(HostLink::connect(listening->name(), 1, secret), {.reason = Reason::failed}));
    std::jthread rank1([name = listening->name()] {
        auto link = HostLink::connect(name, 1, secret, soon());
        ASSERT_TRUE(link);
        EXPECT_TRUE(link->adopt(shape, 1, secret, soon()));
    });
    EXPECT_TRUE(listening->share(shape, secret, soon()));
    rank1.join();
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(HostLink, ProcessOfAnotherUserIsNotHeard) {
    auto listening = HostLink::listen();
    ASSERT_TRUE(listening);
    auto knows_all = connect_to(listening->name());
    ASSERT_TRUE(knows_all);
    ASSERT_TRUE(send_all(*knows_all, greeting_of(1, secret)));
    test::other_users = 1;
    EXPECT_TRUE(fails(listening->share(shape, secret, net::now() + std::chrono::milliseconds(20)),
                      {.reason = Reason::timed_out}));
    EXPECT_EQ(test::other_users, 0);
}

TEST(HostLink, SecretIsNotShownToAnotherUser) {
    const std::string name = "atp-impostor-" + std::to_string(getpid());
    const auto impostor = listen_at(name);
    ASSERT_TRUE(impostor);
    test::other_users = 1;
    EXPECT_TRUE(fails(HostLink::connect(name, 1, secret), {.text = "the socket of rank 0 belongs to another user"}));
    const auto connection = accept_from(*impostor, soon());
    ASSERT_TRUE(connection);
    std::byte first{};
    EXPECT_TRUE(fails(receive_all(*connection, {&first, 1}, soon()), {.reason = Reason::closed}));
}

TEST(HostLink, MissingRankTimesOut) {
    auto listening = HostLink::listen();
    ASSERT_TRUE(listening);
    const auto shared = listening->share(shape, secret, net::now() + std::chrono::milliseconds(20));
    EXPECT_TRUE(fails(shared, {.reason = Reason::timed_out}));
    EXPECT_FALSE(HostLink::connect("atp-nobody", 1, secret));
}

// A process with a child that keeps copies of all its descriptors: docs/spec/hazards.md#h44
TEST(HostLink, H44_EndOfAProcessIsNoticedAtOnceAlthoughItsChildLives) {
    auto listening = HostLink::listen();
    ASSERT_TRUE(listening);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t process = fork();
    if (process == 0) {
        auto link = HostLink::connect(listening->name(), 1, secret);
        if (!link || !link->adopt(shape, 1, secret, soon())) _exit(1);
        if (fork() == 0) {
            char end = 0;
            close(ends[1]);
            _exit(read(ends[0], &end, 1) == 0 ? 0 : 1);
        }
        _exit(0);
    }
    const auto memory = listening->share(shape, secret, soon());
    ASSERT_TRUE(memory) << to_string(memory.error());
    listening->watch(**memory);
    const Time until = soon();
    while ((*memory)->presence_of(1) == Presence::here && net::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ((*memory)->presence_of(1), Presence::ended);
    EXPECT_EQ((*memory)->lost(0), 1U);
    close(ends[0]);
    close(ends[1]);
    waitpid(process, nullptr, 0);
}

// docs/spec/hazards.md#h41
TEST(HostLink, H41_RankWithAnotherSecretOfTheJobSharesNothing) {
    auto listening = HostLink::listen();
    ASSERT_TRUE(listening);
    std::jthread rank1([name = listening->name()] {
        auto link = HostLink::connect(name, 1, secret);
        ASSERT_TRUE(link);
        EXPECT_TRUE(fails(link->adopt(shape, 1, other_secret, soon()), {.text = "this is not the memory of rank 0"}));
    });
    EXPECT_TRUE(fails(listening->share(shape, secret, soon()), {.reason = Reason::closed}));
}

}  // namespace
}  // namespace atp::shm
