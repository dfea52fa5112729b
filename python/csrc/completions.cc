// SPDX-License-Identifier: Apache-2.0
#include "completions.h"

#include <pthread.h>

#include <utility>

namespace atp::python {
namespace {

// Longer than a callback that only computes usually takes, so that such callbacks keep the order of posting.
constexpr std::chrono::milliseconds longest_wait{5};

}  // namespace

thread_local int CallbackScope::depth = 0;

std::shared_ptr<Completions> Completions::start() {
    std::shared_ptr<Completions> completions(new Completions);
    const Lock lock(completions->mutex_);
    completions->add_thread();
    return completions;
}

Completions::~Completions() {
    for (std::thread& thread : threads_) thread.detach();
}

void Completions::note_failure(const Error& error) {
    const Lock lock(mutex_);
    if (!failure_) failure_ = error;
}

std::optional<Error> Completions::failure() const {
    const Lock lock(mutex_);
    return failure_;
}

// Each thread shares ownership: the last other owner may release the object inside one of its jobs.
void Completions::add_thread() {
    threads_.emplace_back([self = shared_from_this()] { self->run(); });
    pthread_setname_np(threads_.back().native_handle(), "atp-completions");
}

void Completions::post(std::function<void()> job) {
    {
        const std::scoped_lock lock(mutex_);
        if (!stopping_) {
            jobs_.push_back(std::move(job));
            changed_.notify_one();
            return;
        }
    }
    job();
}

void Completions::stop() {
    std::vector<std::thread> threads;
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        threads.swap(threads_);
        changed_.notify_all();
    }
    for (std::thread& thread : threads) {
        if (CallbackScope::active() || thread.get_id() == std::this_thread::get_id()) {
            thread.detach();
        } else {
            thread.join();
        }
    }
}

void Completions::wait_for_turn(Lock& lock) {
    while (!jobs_.empty() || !stopping_) {
        if (jobs_.empty()) {
            changed_.wait(lock);
        } else if (const auto turn = last_begun_ + longest_wait; running_ != 0 && Clock::now() < turn) {
            changed_.wait_until(lock, turn);
        } else {
            return;
        }
    }
}

void Completions::run() {
    Lock lock(mutex_);
    for (;;) {
        wait_for_turn(lock);
        if (jobs_.empty()) return;
        auto job = std::move(jobs_.front());
        jobs_.pop_front();
        last_begun_ = Clock::now();
        // Keep one idle thread: it begins the next job if this one takes longer than the turn.
        if (++running_ == threads_.size()) add_thread();
        lock.unlock();
        job();
        job = nullptr;  // destroy captures without the lock: they may hold the last reference to a work
        lock.lock();
        --running_;
        changed_.notify_one();
    }
}

}  // namespace atp::python
