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
    bool failed = false;  // an error or the other end's close: the next read or write says which
};

// What a loop drives: a channel, a switch, a server, with its sockets. It never waits by itself: each call does what
// can be done now, in bounded batches, and returns.
class Actor {
  public:
    virtual ~Actor() = default;

    // A watched descriptor is ready, and will be called ready again as long as it is.
    virtual void handle_ready(int descriptor, Ready ready, Time now) = 0;
    // poll_timeout() has passed. Spurious calls are to be tolerated.
    virtual void handle_timeout(Time now) = 0;
    // wake() was called, once or several times, from any thread.
    virtual void handle_wake(Time) {}
    // The end of a round, when everything that happened at `now` was told: the place to transmit.
    virtual void finish_round(Time) {}
    // When it wants handle_timeout(); never: not at all. Asked once a round.
    [[nodiscard]] virtual Time poll_timeout() const { return never; }

  protected:
    Actor() = default;
    Actor(const Actor&) = default;
    Actor& operator=(const Actor&) = default;
};

struct LoopConfig {
    Duration spin{0};              // before it sleeps, look for so long for something to do: latency for a busy core
    std::optional<unsigned> core;  // keep the loop's thread there
    std::uint32_t events_per_round = 64;
};

// One thread's loop: waits for descriptors, deadlines and wake-ups, and runs actors to completion.
//
// Calling order: add() and watch() what there is to drive, run() on the thread that is to do it, stop() from anywhere.
// Actors may add, watch, change, unwatch and remove at any time from within their calls. run() begins with a round of
// its own, so that what was put in motion before needs no event. It may be run again after it returned.
// Owns: its epoll instance. Borrows actors until remove(), descriptors until unwatch(), which comes before their close.
// Threads: all of it on the thread that runs, but stop() and wake(), which any thread may call, and a signal handler
// too. Failure: run() ends with an error where the thread cannot be pinned as configured, or waiting itself fails.
class EventLoop {
  public:
    [[nodiscard]] static Result<std::unique_ptr<EventLoop>> open(const LoopConfig& config);
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    void add(Actor& actor);
    void remove(Actor& actor);  // and unwatches what it watches
    [[nodiscard]] Result<void> watch(Actor& actor, int descriptor, Interest interest);
    [[nodiscard]] Result<void> change(int descriptor, Interest interest);
    void unwatch(int descriptor);

    [[nodiscard]] Result<void> run();
    // run() returns at the end of its round; at once where it has not begun.
    void stop() noexcept;
    // All actors get handle_wake(), after all that the caller wrote before is visible to the loop's thread.
    void wake() noexcept;

    // False where the kernel has no epoll_pwait2 (before 5.11): deadlines are then kept to the next millisecond.
    [[nodiscard]] bool precise() const { return precise_; }
    [[nodiscard]] std::uint64_t rounds() const { return rounds_; }

  private:
    struct Watch {
        Actor* actor = nullptr;
        std::uint32_t generation = 0;  // tells an event of a descriptor's former life from those of this one
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
    Descriptor bell_;  // an eventfd
    bool precise_ = true;
    std::vector<Actor*> actors_;  // nullptr: removed in this round
    std::vector<Watch> watches_;  // by descriptor
    std::vector<epoll_event> events_;
    std::uint64_t rounds_ = 0;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> woken_{false};
};

}  // namespace atp::net
