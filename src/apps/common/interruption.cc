// SPDX-License-Identifier: Apache-2.0
#include "apps/common/interruption.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "apps/common/command.h"

namespace atp::apps {
namespace {

// Time in which the calls must return. Channels send LEAVE in this time.
constexpr std::chrono::seconds grace{2};
constexpr std::chrono::milliseconds look_interval{50};

}  // namespace

Interruption::Interruption() : thread_([this] { wait_for_signal(); }) {}

Interruption::~Interruption() {
    {
        const std::scoped_lock lock(mutex_);
        over_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

Interruption::Reach Interruption::ends(End end) {
    const std::scoped_lock lock(mutex_);
    if (came_) end();
    return {*this, ends_.insert(ends_.end(), std::move(end))};
}

Interruption::Reach::~Reach() {
    const std::scoped_lock lock(interruption_.mutex_);
    interruption_.ends_.erase(end_);
}

bool Interruption::came() const {
    const std::scoped_lock lock(mutex_);
    return came_;
}

bool Interruption::wait_for(Duration time) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return came_; });
}

void Interruption::wait_for_signal() {
    for (;;) {
        const bool notified = signals_.wait_for(look_interval).has_value();
        std::unique_lock lock(mutex_);
        if (over_) return;
        if (!notified) continue;
        came_ = true;
        changed_.notify_all();
        for (const End& end : ends_) end();
        if (!changed_.wait_for(lock, grace, [this] { return over_; })) _exit(exit_interrupted);
        return;
    }
}

}  // namespace atp::apps
