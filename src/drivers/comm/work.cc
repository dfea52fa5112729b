// SPDX-License-Identifier: Apache-2.0
#include "comm/work.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/older_symbols.h"
#include "net/clock.h"

namespace atp::comm {

Work::Work(Operation operation, std::unique_ptr<protocol::Tensor> tensor, Time begun, Time deadline)
    : operation_(operation), tensor_(std::move(tensor)), begun_(begun), deadline_(deadline) {}

class Work::Waiting {
  public:
    explicit Waiting(const Work& work)
        : times_(work.done() ? nullptr : work.times_.get()), since_(times_ == nullptr ? Time() : net::now()) {}
    ~Waiting() {
        if (times_ != nullptr) times_->wait(net::now() - since_);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

  private:
    OperationTimes* times_;
    Time since_;
};

void Work::set_times(std::shared_ptr<OperationTimes> times) {
    times_ = std::move(times);
    times_->begin(begun_);
}

void Work::add_slice(std::uint64_t first, std::uint64_t size, std::uint16_t purpose) {
    slices_.emplace_back(*tensor_, first, size, purpose);
    add_part();
}

void Work::add_beside(std::unique_ptr<protocol::Tensor> tensor, std::uint64_t step, std::uint16_t purpose) {
    protocol::Tensor& beside = *beside_.emplace_back(std::move(tensor));
    for (std::uint64_t first = 0; first < beside.size(); first += step) {
        slices_.emplace_back(beside, first, std::min(step, beside.size() - first), purpose);
        add_part();
    }
}

Result<void> Work::wait() {
    const Waiting waiting(*this);
    if (!done()) {
        if (const auto attendant = attendant_.lock()) attendant->attend(*this, never);
    }
    std::unique_lock lock(mutex_);
    // The channels enforce the deadline: each part ends with a result or an error.
    changed_.wait(lock, [this] { return done(); });
    if (error_) return tl::unexpected(*error_);
    return {};
}

std::optional<Result<void>> Work::wait_until(Time until) {
    const Waiting waiting(*this);
    if (!done()) {
        if (const auto attendant = attendant_.lock()) attendant->attend(*this, until);
    }
    std::unique_lock lock(mutex_);
    while (!done()) {
        const Time now = net::now();
        if (now >= until) return std::nullopt;
        changed_.wait_for(lock, std::min<Duration>(until - now, net::longest_sleep));
    }
    if (error_) return Result<void>(tl::unexpected(*error_));
    return Result<void>();
}

Result<void> Work::outcome() const {
    const std::scoped_lock lock(mutex_);
    if (error_) return tl::unexpected(*error_);
    return {};
}

void Work::on_done(std::function<void()> callback) {
    set_callback(std::move(callback));
    continue_without_caller();
}

void Work::set_callback(std::function<void()> callback) {
    {
        const std::scoped_lock lock(mutex_);
        if (!done()) std::swap(callback_, callback);
    }
    if (callback) callback();
}

void Work::continue_without_caller() {
    if (done()) return;
    if (const auto attendant = attendant_.lock()) attendant->continue_on_thread();
}

void Work::finish_part(std::optional<Error> error) {
    std::function<void()> callback;
    bool first = false;
    {
        const std::scoped_lock lock(mutex_);
        first = error && !error_;
        if (first) error_ = error;
    }
    // Called before the part is finished, because the communicator may end after that.
    if (first && failed_) failed_(*error);
    if (last_step_) {
        if (parts_left_.fetch_sub(1, std::memory_order_acq_rel) != 2) return;
        const auto step = std::exchange(last_step_, nullptr);  // the only part that is left
        return finish_part(outcome() ? step() : std::nullopt);
    }
    {
        const std::scoped_lock lock(mutex_);
        if (parts_left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        if (times_ != nullptr) times_->end(net::now());
        callback = std::move(callback_);
        changed_.notify_all();
    }
    if (callback) callback();
}

}  // namespace atp::comm
