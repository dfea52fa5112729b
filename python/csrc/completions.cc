// SPDX-License-Identifier: Apache-2.0
#include "completions.h"

#include <pthread.h>

#include <utility>

namespace atp::python {

std::shared_ptr<Completions> Completions::start() {
    std::shared_ptr<Completions> completions(new Completions);
    // The thread holds the object, since the last of the others may let go of it in one of its own jobs.
    completions->thread_ = std::thread([completions] { completions->run(); });
    pthread_setname_np(completions->thread_.native_handle(), "atp-completions");
    return completions;
}

Completions::~Completions() {
    if (thread_.joinable()) thread_.detach();
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
    std::thread thread;
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        thread = std::exchange(thread_, {});
        changed_.notify_one();
    }
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id()) {
        thread.detach();
    } else {
        thread.join();
    }
}

void Completions::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        auto job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job();
        job = nullptr;  // what it holds may be the last reference: not under the lock
        lock.lock();
    }
}

}  // namespace atp::python
