// SPDX-License-Identifier: Apache-2.0
#include "net/event_loop.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>

#include "net/affinity.h"
#include "net/clock.h"

namespace atp::net {
namespace {

std::uint64_t tag_of(int descriptor, std::uint32_t generation) {
    return std::uint64_t{generation} << 32 | static_cast<std::uint32_t>(descriptor);
}

// By default, the kernel may wake a thread up to 50 us late to save power. 50 us is as long as a round trip.
class FineTimers {
  public:
    FineTimers() : before_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1UL); }
    ~FineTimers() {
        if (before_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_));
    }
    FineTimers(const FineTimers&) = delete;
    FineTimers& operator=(const FineTimers&) = delete;

  private:
    int before_;
};

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::open(const LoopConfig& config) {
    Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.valid()) return fail_with_errno(Operation::open, errno, {}, "epoll");
    Descriptor bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!bell.valid()) return fail_with_errno(Operation::open, errno, {}, "eventfd");
    // The constructor is private, so make_unique cannot call it.
    std::unique_ptr<EventLoop> loop(new EventLoop(config, std::move(epoll), std::move(bell)));
    const auto watched = loop->control(EPOLL_CTL_ADD, loop->bell_.number(), {.read = true, .write = false});
    if (!watched) return Failure(watched.error());
    return loop;
}

EventLoop::EventLoop(const LoopConfig& config, Descriptor epoll, Descriptor bell)
    : config_(config),
      epoll_(std::move(epoll)),
      bell_(std::move(bell)),
      events_(std::max<std::size_t>(config.events_per_round, 1)) {}

void EventLoop::add(Actor& actor) { actors_.push_back(&actor); }

void EventLoop::remove(Actor& actor) {
    for (std::size_t descriptor = 0; descriptor < watches_.size(); ++descriptor) {
        if (watches_[descriptor].actor == &actor) unwatch(static_cast<int>(descriptor));
    }
    std::ranges::replace(actors_, &actor, nullptr);
}

Result<void> EventLoop::watch(Actor& actor, int descriptor, Interest interest) {
    if (descriptor < 0) {
        return fail(Operation::wait, Reason::malformed, fmt::format("descriptor {}", descriptor),
                    "a descriptor is 0 or above");
    }
    const auto index = static_cast<std::size_t>(descriptor);
    if (index >= watches_.size()) watches_.resize(index + 1);
    if (auto added = control(EPOLL_CTL_ADD, descriptor, interest); !added) return added;
    watches_[index].actor = &actor;
    return {};
}

Result<void> EventLoop::change(int descriptor, Interest interest) {
    return control(EPOLL_CTL_MOD, descriptor, interest);
}

void EventLoop::unwatch(int descriptor) {
    Watch* const watch = find_watch(descriptor);
    if (watch == nullptr) return;
    watch->actor = nullptr;
    ++watch->generation;
    epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, descriptor, nullptr);
}

Result<void> EventLoop::control(int operation, int descriptor, Interest interest) {
    const auto index = static_cast<std::size_t>(descriptor);
    epoll_event event{};
    event.events = (interest.read ? EPOLLIN : 0U) | (interest.write ? EPOLLOUT : 0U);
    event.data.u64 = tag_of(descriptor, index < watches_.size() ? watches_[index].generation : 0);
    if (epoll_ctl(epoll_.number(), operation, descriptor, &event) != 0) {
        return fail_with_errno(Operation::wait, errno, fmt::format("descriptor {}", descriptor));
    }
    return {};
}

EventLoop::Watch* EventLoop::find_watch(int descriptor) {
    const auto index = static_cast<std::size_t>(descriptor);
    if (descriptor < 0 || index >= watches_.size() || watches_[index].actor == nullptr) return nullptr;
    return &watches_[index];
}

Result<void> EventLoop::run() {
    if (config_.core) {
        if (auto pinned = pin_this_thread(*config_.core); !pinned) return pinned;
    }
    const FineTimers fine_timers;
    auto result = run_rounds();
    stopping_.store(false, std::memory_order_release);
    return result;
}

Result<void> EventLoop::run_rounds() {
    finish_round(now());
    while (!stopping_.load(std::memory_order_acquire)) {
        const int events = wait(next_deadline());
        if (events < 0 && events != -EINTR) return fail_with_errno(Operation::wait, -events);
        const Time at = now();
        dispatch(events, at);
        for_each_actor([at](Actor& actor) {
            if (actor.poll_timeout() <= at) actor.handle_timeout(at);
        });
        finish_round(at);
    }
    return {};
}

// This loop does not call an actor that was added during it. A removed actor is never called again.
template <class Call>
void EventLoop::for_each_actor(Call&& call) {
    const std::size_t count = actors_.size();
    for (std::size_t at = 0; at < count; ++at) {
        if (actors_[at] != nullptr) call(*actors_[at]);
    }
}

void EventLoop::finish_round(Time now) {
    for_each_actor([now](Actor& actor) { actor.finish_round(now); });
    std::erase(actors_, nullptr);
    rounds_.store(rounds_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

Time EventLoop::next_deadline() const {
    Time deadline = never;
    for (const Actor* actor : actors_) {
        deadline = std::min(deadline, actor->poll_timeout());
    }
    return deadline;
}

// Returns the number of events, or -errno.
int EventLoop::wait(Time deadline) {
    if (deadline == never && config_.spin == Duration::zero()) return sleep(Duration::max());
    Time at = now();
    const Time spin_end = at + config_.spin;
    while (at < spin_end && at < deadline) {
        const int events = sleep(Duration::zero());
        if (events != 0) return events;
        at = now();
    }
    if (deadline == never) return sleep(Duration::max());
    return sleep(std::max(deadline - at, Duration::zero()));
}

// Duration::max(): without a limit.
int EventLoop::sleep(Duration timeout) {
    const int capacity = static_cast<int>(events_.size());
    const bool for_ever = timeout == Duration::max();
    if (precise_) {
        // By number, because the C library has a function for it only since glibc 2.35.
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
        const timespec at_most{.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
        const int events = static_cast<int>(syscall(SYS_epoll_pwait2, epoll_.number(), events_.data(), capacity,
                                                    for_ever ? nullptr : &at_most, nullptr, std::size_t{0}));
        if (events >= 0) return events;
        // EPERM: a sandbox that does not know the call refuses it.
        if (errno != ENOSYS && errno != EPERM) return -errno;
        precise_ = false;
    }
    // Rounded up, so the deadline has passed when the loop checks it.
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(for_ever ? Duration::zero() : timeout);
    const auto longest = std::int64_t{std::numeric_limits<int>::max()};
    const int at_most = for_ever ? -1 : static_cast<int>(std::min(milliseconds.count(), longest));
    const int events = epoll_wait(epoll_.number(), events_.data(), capacity, at_most);
    return events >= 0 ? events : -errno;
}

void EventLoop::dispatch(int events, Time now) {
    for (int at = 0; at < events; ++at) {
        const epoll_event& event = events_[static_cast<std::size_t>(at)];
        const auto descriptor = static_cast<int>(event.data.u64 & 0xFFFF'FFFFU);
        if (descriptor == bell_.number()) {
            answer_bell(now);
            continue;
        }
        const Watch* const watch = find_watch(descriptor);
        if (watch == nullptr || tag_of(descriptor, watch->generation) != event.data.u64) continue;
        const Ready ready{.read = (event.events & EPOLLIN) != 0,
                          .write = (event.events & EPOLLOUT) != 0,
                          .failed = (event.events & (EPOLLERR | EPOLLHUP)) != 0};
        watch->actor->handle_ready(descriptor, ready, now);
    }
}

// The flag is cleared before the actors are called. If wake() finds it set, the actors are still to be called.
void EventLoop::answer_bell(Time now) {
    eventfd_t count = 0;
    eventfd_read(bell_.number(), &count);
    if (woken_.exchange(false, std::memory_order_acq_rel)) {
        for_each_actor([now](Actor& actor) { actor.handle_wake(now); });
    }
}

void EventLoop::stop() noexcept {
    stopping_.store(true, std::memory_order_release);
    ring_bell();
}

void EventLoop::wake() noexcept {
    if (!woken_.exchange(true, std::memory_order_acq_rel)) ring_bell();
}

// A signal handler must preserve errno.
void EventLoop::ring_bell() noexcept {
    const int before = errno;
    eventfd_write(bell_.number(), 1);
    errno = before;
}

}  // namespace atp::net
