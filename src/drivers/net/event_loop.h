// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/descriptor.h"

namespace atp::net {

struct Interest {
    bool read = true;
    bool write = false;
};

struct Ready {
    bool read = false;
    bool write = false;
    bool failed = false;  // an error, or the peer closed the connection; the next read or write returns the reason
};

// An object that a loop drives: a channel, a switch or a server, with its sockets. An actor never waits. Each call
// processes ready descriptors in bounded batches, and returns.
//
// Ownership: the loop borrows it.
// Calling order: per round, handle_ready(), handle_wake(), handle_timeout() as needed, then finish_round().
// Threads: all calls on the loop's thread. Failure: the actor handles its own.
class Actor {
  public:
    virtual ~Actor() = default;

    // A watched descriptor is ready. The loop repeats the call in each round while the descriptor stays ready.
    virtual void handle_ready(int descriptor, Ready ready, Time now) = 0;
    // poll_timeout() has passed. The actor must tolerate spurious calls.
    virtual void handle_timeout(Time now) = 0;
    // A thread called wake() once or several times.
    virtual void handle_wake(Time) {}
    // The end of a round, after all other calls for `now`: transmit here.
    virtual void finish_round(Time) {}
    // When handle_timeout() is due; never: no timeout. Called in every round.
    [[nodiscard]] virtual Time poll_timeout() const { return never; }

  protected:
    Actor() = default;
    Actor(const Actor&) = default;
    Actor& operator=(const Actor&) = default;
};

struct LoopConfig {
    Duration spin{0};                     // busy polling before each sleep: lower latency, but a busy core; 0: none
    std::optional<unsigned> core;         // to which run() pins its thread; nullopt: not pinned
    std::uint32_t events_per_round = 64;  // at most; 0 counts as 1
};

// The event loop of one thread: waits for descriptors, deadlines and wake-ups, and runs actors to completion.
//
// Ownership: owns its epoll instance. Borrows actors until remove(), and descriptors until unwatch(). Call unwatch()
//   before the descriptor is closed.
// Calling order: add() and watch(), then run() on the loop's thread, then stop() from any thread. Actors may call
//   add(), watch(), change(), unwatch() and remove() at any time from within their calls. run() begins with
//   finish_round(), so packets prepared before it are sent without an event. run() may be called again after it
//   returned.
// Threads: all calls on the thread of run(). Exceptions: any thread and any signal handler may call stop() and wake(),
//   and any thread rounds().
// Failure: run() returns an error if it cannot pin the thread, or if waiting fails.
class EventLoop {
  public:
    [[nodiscard]] static Result<std::unique_ptr<EventLoop>> open(const LoopConfig& config);
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    void add(Actor& actor);
    void remove(Actor& actor);  // also unwatches its descriptors
    [[nodiscard]] Result<void> watch(Actor& actor, int descriptor, Interest interest);
    [[nodiscard]] Result<void> change(int descriptor, Interest interest);
    void unwatch(int descriptor);

    [[nodiscard]] Result<void> run();
    // run() returns at the end of its round. If run() has not begun, the next run() returns after its first
    // finish_round().
    void stop() noexcept;
    // Calls handle_wake() of all actors on the loop's thread, which then sees all earlier writes of the caller.
    void wake() noexcept;

    // False: the kernel has no epoll_pwait2 (before 5.11), and deadlines are rounded up to the next millisecond.
    [[nodiscard]] bool precise() const { return precise_; }
    // That have begun.
    [[nodiscard]] std::uint64_t rounds() const { return rounds_.load(std::memory_order_relaxed); }

  private:
    struct Watch {
        Actor* actor = nullptr;
        std::uint32_t generation = 0;  // detects events of an earlier file with the same descriptor
    };

    EventLoop(const LoopConfig& config, Descriptor epoll, Descriptor bell);
    [[nodiscard]] Result<void> control(int operation, int descriptor, Interest interest);
    [[nodiscard]] Watch* find_watch(int descriptor);
    [[nodiscard]] Result<void> run_rounds();
    [[nodiscard]] Time next_deadline() const;
    [[nodiscard]] int wait(Time deadline);
    [[nodiscard]] int sleep(Duration timeout);
    void dispatch(int events, Time now);
    void ring_bell() noexcept;
    void answer_bell(Time now);
    void finish_round(Time now);
    template <class Call>
    void for_each_actor(Call&& call);

    LoopConfig config_;
    Descriptor epoll_;
    Descriptor bell_;  // eventfd of stop() and wake()
    bool precise_ = true;
    std::vector<Actor*> actors_;  // nullptr: removed in this round
    std::vector<Watch> watches_;  // by descriptor; actor == nullptr: not watched
    std::vector<epoll_event> events_;
    std::atomic<std::uint64_t> rounds_{0};
    std::atomic<bool> stopping_{false};
    std::atomic<bool> woken_{false};
};

}  // namespace atp::net
