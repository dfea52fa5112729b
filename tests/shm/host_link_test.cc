// SPDX-License-Identifier: Apache-2.0
#include "shm/host_link.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "net/clock.h"
#include "shm/unix_socket.h"
#include "support/fails.h"

namespace atp::shm {
namespace {

constexpr Secret secret{1, 2};
constexpr Secret other_secret{1, 3};
constexpr HostShape shape{.ranks = 2, .slots = 1, .chunk_lanes = 64};
constexpr Duration longest_wait = std::chrono::seconds(20);

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
