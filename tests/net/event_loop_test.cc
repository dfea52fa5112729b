// SPDX-License-Identifier: Apache-2.0
#include "net/event_loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "net/affinity.h"
#include "net/clock.h"
#include "support/fails.h"
#include "system_calls.h"

namespace atp::net {
namespace {

using std::chrono::milliseconds;
using test::system_calls;

// An actor made of functions, and the event loop that drives it until the actor stops the loop.
class Puppet : public Actor {
  public:
    std::function<void(int, Ready)> on_ready;
    std::function<void(Time)> on_timeout;
    std::function<void()> on_wake;
    std::function<void()> on_finish;
    Time deadline = never;

    void handle_ready(int descriptor, Ready ready, Time) override {
        if (on_ready) on_ready(descriptor, ready);
    }
    void handle_timeout(Time now) override {
        if (on_timeout) on_timeout(now);
    }
    void handle_wake(Time) override {
        if (on_wake) on_wake();
    }
    void finish_round(Time) override {
        if (on_finish) on_finish();
    }
    [[nodiscard]] Time poll_timeout() const override { return deadline; }
};

class Loop : public testing::Test {
  protected:
    void SetUp() override {
        open({});
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends_), 0);
    }
    void TearDown() override {
        close(ends_[0]);
        close(ends_[1]);
    }
    void open(const LoopConfig& config) {
        auto opened = EventLoop::open(config);
        ASSERT_TRUE(opened) << to_string(opened.error());
        loop_ = std::move(*opened);
    }
    void run() {
        const auto result = loop_->run();
        EXPECT_TRUE(result) << to_string(result.error());
    }
    static void send(int descriptor) { ASSERT_EQ(write(descriptor, "x", 1), 1); }
    static void take(int descriptor) {
        char byte = 0;
        ASSERT_EQ(read(descriptor, &byte, 1), 1);
    }

    test::WithSystemCalls calls_;
    std::unique_ptr<EventLoop> loop_;
    int ends_[2] = {-1, -1};
};

TEST_F(Loop, StopBeforeRunReturnsAtOnceAndRunMayFollow) {
    Puppet actor;
    int rounds = 0;
    actor.on_finish = [&] { ++rounds; };
    loop_->add(actor);
    loop_->stop();
    run();
    EXPECT_EQ(rounds, 1) << "the round that run() begins with";
    actor.deadline = now();
    actor.on_timeout = [&](Time) { loop_->stop(); };
    run();
    EXPECT_GE(rounds, 3);
}

TEST_F(Loop, ReadinessIsReportedUntilItIsConsumed) {
    Puppet actor;
    int calls = 0;
    actor.on_ready = [&](int descriptor, Ready ready) {
        EXPECT_EQ(descriptor, ends_[0]);
        EXPECT_TRUE(ready.read);
        EXPECT_FALSE(ready.write);
        if (++calls < 3) return;  // the event is not consumed, so the loop reports it again
        take(descriptor);
        loop_->stop();
    };
    loop_->add(actor);
    ASSERT_TRUE(loop_->watch(actor, ends_[0], {}));
    send(ends_[1]);
    run();
    EXPECT_EQ(calls, 3);
}

TEST_F(Loop, WritabilityIsReportedOnlyWhileRequested) {
    Puppet actor;
    std::vector<std::string> reported;
    actor.on_ready = [&](int descriptor, Ready ready) {
        reported.emplace_back(ready.write ? "write" : "read");
        if (ready.write) {
            ASSERT_TRUE(loop_->change(descriptor, {.read = true, .write = false}));
            send(ends_[1]);
        } else {
            loop_->stop();
        }
    };
    loop_->add(actor);
    ASSERT_TRUE(loop_->watch(actor, ends_[0], {.read = true, .write = true}));
    run();
    EXPECT_EQ(reported, (std::vector<std::string>{"write", "read"}));
}

TEST_F(Loop, NearestDeadlineFiresFirstAndNeverEarly) {
    for (const int code : {0, ENOSYS, EPERM}) {
        open({});
        system_calls.pwait2_fails = code;
        std::vector<std::string> order;
        Puppet early;
        Puppet late;
        early.deadline = now() + std::chrono::microseconds(2500);
        late.deadline = early.deadline + std::chrono::hours(1);
        early.on_timeout = [&](Time at) {
            EXPECT_GE(at, early.deadline);
            early.deadline = never;
            late.deadline = now() + milliseconds(2);
            order.emplace_back("early");
        };
        late.on_timeout = [&](Time at) {
            EXPECT_GE(at, late.deadline);
            order.emplace_back("late");
            loop_->stop();
        };
        loop_->add(late);
        loop_->add(early);
        run();
        EXPECT_EQ(order, (std::vector<std::string>{"early", "late"}));
        EXPECT_EQ(loop_->precise(), code == 0);
        EXPECT_LT(loop_->rounds(), 20U) << "it spins instead of sleeping";
    }
}

TEST_F(Loop, SpinningEndsAtTheDeadline) {
    open({.spin = std::chrono::hours(1), .core = {}, .events_per_round = 4});
    Puppet actor;
    actor.deadline = now() + milliseconds(2);
    actor.on_timeout = [&](Time at) {
        EXPECT_GE(at, actor.deadline);
        loop_->stop();
    };
    loop_->add(actor);
    run();
    EXPECT_EQ(system_calls.sleeps, 0U);
}

TEST_F(Loop, WithoutSpinningTheLoopSleeps) {
    Puppet actor;
    actor.on_ready = [&](int, Ready) { loop_->stop(); };
    loop_->add(actor);
    ASSERT_TRUE(loop_->watch(actor, ends_[0], {}));
    send(ends_[1]);
    run();
    EXPECT_EQ(system_calls.looks, 0U);
    EXPECT_EQ(system_calls.sleeps, 1U);
}

TEST_F(Loop, SpinningReportsArrivals) {
    open({.spin = std::chrono::hours(1), .core = {}, .events_per_round = 4});
    Puppet actor;
    actor.on_ready = [&](int, Ready) { loop_->stop(); };
    loop_->add(actor);
    ASSERT_TRUE(loop_->watch(actor, ends_[0], {}));
    std::thread other([this] { send(ends_[1]); });
    run();
    other.join();
    EXPECT_GE(system_calls.looks, 1U);
    EXPECT_EQ(system_calls.sleeps, 0U);
}

TEST_F(Loop, WakeUpReachesEveryActorAndPublishesEarlierWrites) {
    Puppet first;
    Puppet second;
    int handed_over = 0;  // not atomic: the wake-up must make the write visible
    int seen = 0;
    int wakes = 0;
    first.on_wake = [&] { ++wakes; };
    second.on_wake = [&] {
        seen = handed_over;
        loop_->stop();
    };
    loop_->add(first);
    loop_->add(second);
    std::thread other([&] {
        handed_over = 7;
        loop_->wake();
    });
    run();
    other.join();
    EXPECT_EQ(seen, 7);
    EXPECT_EQ(wakes, 1);
}

TEST_F(Loop, NoWakeUpOfManyThreadsIsLost) {
    constexpr int threads = 4;
    constexpr int calls = 2000;
    std::atomic<int> posted{0};
    int seen = 0;
    int wakes = 0;
    Puppet actor;
    actor.on_wake = [&] {
        ++wakes;
        seen = posted.load();
        if (seen == threads * calls) loop_->stop();
    };
    loop_->add(actor);
    std::vector<std::thread> others;
    for (int i = 0; i < threads; ++i) {
        others.emplace_back([&] {
            for (int call = 0; call < calls; ++call) {
                posted.fetch_add(1);
                loop_->wake();
            }
        });
    }
    run();
    for (std::thread& other : others) other.join();
    EXPECT_EQ(seen, threads * calls);
    EXPECT_LE(wakes, threads * calls);
}

TEST_F(Loop, StopFromAnotherThreadEndsTheRun) {
    Puppet actor;
    std::atomic<bool> running{false};
    actor.on_finish = [&] { running = true; };
    loop_->add(actor);
    std::thread other([&] {
        while (!running) std::this_thread::yield();
        loop_->stop();
    });
    run();
    other.join();
    EXPECT_GE(loop_->rounds(), 1U);
}

TEST_F(Loop, UnwatchedDescriptorIsNotReported) {
    int more[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, more), 0);
    Puppet actor;
    int calls = 0;
    // Both are ready in one round; the first to run removes the other.
    actor.on_ready = [&](int descriptor, Ready) {
        ++calls;
        loop_->unwatch(descriptor == ends_[0] ? more[0] : ends_[0]);
        loop_->stop();
    };
    loop_->add(actor);
    ASSERT_TRUE(loop_->watch(actor, ends_[0], {}));
    ASSERT_TRUE(loop_->watch(actor, more[0], {}));
    send(ends_[1]);
    send(more[1]);
    run();
    EXPECT_EQ(calls, 1);
    close(more[0]);
    close(more[1]);
}

TEST_F(Loop, EventOfAReusedDescriptorIsNotReported) {
    int more[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, more), 0);
    Puppet actor;
    Puppet successor;
    int calls = 0;
    int successor_calls = 0;
    actor.on_ready = [&](int descriptor, Ready) {
        if (++calls > 1) return;
        const int other = descriptor == ends_[0] ? more[0] : ends_[0];
        loop_->unwatch(other);
        take(other);
        ASSERT_TRUE(loop_->watch(successor, other, {}));
        loop_->stop();
    };
    successor.on_ready = [&](int, Ready) { ++successor_calls; };
    loop_->add(actor);
    loop_->add(successor);
    ASSERT_TRUE(loop_->watch(actor, ends_[0], {}));
    ASSERT_TRUE(loop_->watch(actor, more[0], {}));
    send(ends_[1]);
    send(more[1]);
    run();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(successor_calls, 0);
    close(more[0]);
    close(more[1]);
}

TEST_F(Loop, RemovedActorIsNeverCalled) {
    Puppet first;
    Puppet second;
    int second_calls = 0;
    first.deadline = second.deadline = now();
    first.on_timeout = [&](Time) {
        loop_->remove(second);
        first.deadline = now() + milliseconds(1);
        first.on_timeout = [&](Time) { loop_->stop(); };
    };
    second.on_timeout = [&](Time) { ++second_calls; };
    second.on_ready = [&](int, Ready) { ++second_calls; };
    loop_->add(first);
    loop_->add(second);
    ASSERT_TRUE(loop_->watch(second, ends_[0], {.read = true, .write = false}));
    run();
    EXPECT_EQ(second_calls, 0);
    send(ends_[1]);
    first.deadline = now() + milliseconds(1);
    run();
    EXPECT_EQ(second_calls, 0);
}

TEST_F(Loop, ActorMayAddAnother) {
    Puppet first;
    Puppet second;
    second.deadline = now();
    second.on_timeout = [&](Time) { loop_->stop(); };
    first.deadline = now();
    first.on_timeout = [&](Time) {
        first.deadline = never;
        loop_->add(second);
    };
    loop_->add(first);
    run();
}

TEST_F(Loop, InvalidOrRepeatedWatchIsRefused) {
    Puppet actor;
    EXPECT_TRUE(fails(loop_->watch(actor, -1, {}), {.reason = Reason::malformed}));
    ASSERT_TRUE(loop_->watch(actor, ends_[0], {}));
    const auto twice = loop_->watch(actor, ends_[0], {});
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code, EEXIST);
    const auto unknown = loop_->change(ends_[1], {});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ENOENT);
}

TEST_F(Loop, RunUsesTheConfiguredCore) {
    const auto cores = allowed_cores();
    ASSERT_TRUE(cores);
    open({.spin = {}, .core = cores->back(), .events_per_round = 4});
    Puppet actor;
    std::vector<unsigned> found;
    actor.on_finish = [&] { found = allowed_cores().value_or(std::vector<unsigned>{}); };
    loop_->add(actor);
    loop_->stop();
    std::thread other([this] { run(); });  // a thread of its own, because pinning cannot be undone
    other.join();
    EXPECT_EQ(found, std::vector<unsigned>{cores->back()});
}

TEST_F(Loop, MissingCoreFailsTheRun) {
    open({.spin = {}, .core = 1'000'000, .events_per_round = 4});
    const auto result = loop_->run();
    EXPECT_TRUE(
        fails(result,
              {.operation = Operation::pin, .reason = Reason::malformed, .text = ::testing::HasSubstr("may run on")}));
}

}  // namespace
}  // namespace atp::net
