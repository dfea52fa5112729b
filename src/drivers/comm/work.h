// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "comm/operation_times.h"
#include "protocol/tensor.h"
#include "tensor/slice.h"
#include "tensor/span_scales.h"

namespace atp::comm {

class Work;

// Advances works, either on the thread that waits for one or on a thread of its own.
class WorkAttendant {
  public:
    virtual ~WorkAttendant() = default;
    // On the calling thread, advances `work` until it is done or until `until`. Returns at once if another thread
    // advances it.
    virtual void attend(Work& work, Time until) = 0;
    // No caller waits for the work: the attendant's own thread advances it. Returns at once.
    virtual void continue_on_thread() = 0;
};

// One collective operation of one rank, in flight on one or several channels.
//
// Ownership: owns its tensors. A Communicator creates it; the caller and the channels share it.
// Calling order: add_slice() and on_failure() before any channel gets a part; then wait(), wait_until() or on_done().
// Threads: any. Each channel finishes its parts on its own thread.
// Failure: the first part that fails decides the outcome. Once done() is true, the tensor's memory is not accessed.
class Work {
  public:
    Work(Operation operation, std::unique_ptr<protocol::Tensor> tensor, Time begun, Time deadline);

    // Only before any channel gets a part.
    void add_slice(std::uint64_t first, std::uint64_t size, std::uint16_t purpose);
    // Parts for what the ranks agree on before or after the tensor of the operation: `tensor` in slices of `step`
    // elements.
    void add_beside(std::unique_ptr<protocol::Tensor> tensor, std::uint64_t step, std::uint16_t purpose);
    // A part without a slice, which finish_part() ends as it does the others.
    void add_part() { parts_left_.fetch_add(1, std::memory_order_release); }
    // Only before any channel gets a part: `step` runs once all parts have succeeded, and before the work is done, on
    // the thread that ends the last of them. Its error is the outcome.
    void set_last_step(std::function<std::optional<Error>()> step) {
        last_step_ = std::move(step);
        add_part();
    }
    [[nodiscard]] std::vector<tensor::Slice>& slices() { return slices_; }

    [[nodiscard]] bool done() const { return parts_left_.load(std::memory_order_acquire) == 0; }
    // Waits until the operation is done, at most until its deadline, and returns its outcome.
    [[nodiscard]] Result<void> wait();
    // Nullopt if the operation is not done at `until`.
    [[nodiscard]] std::optional<Result<void>> wait_until(Time until);
    // Only after done().
    [[nodiscard]] Result<void> outcome() const;
    // Calls `callback` once: on the calling thread, before this returns, if the operation is done; otherwise on the
    // thread that ends its last part, which it must not block. No caller needs to wait.
    void on_done(std::function<void()> callback);
    // on_done() in two steps, for a caller that will wait. set_callback() calls `callback` on the threads of on_done(),
    // but an operation with an attendant advances only while a thread waits for it. continue_without_caller() returns
    // at once and lets the attendant's thread advance it.
    void set_callback(std::function<void()> callback);
    void continue_without_caller();

    // Before any thread waits. nullptr: the work goes on by itself.
    void set_attendant(std::weak_ptr<WorkAttendant> attendant) { attendant_ = std::move(attendant); }

    // Before any channel gets a part: counts the work as an operation that has begun.
    void set_times(std::shared_ptr<OperationTimes> times);

    // Before any thread waits: the scales at which the elements travel, which are known when the work has succeeded.
    // nullptr: the elements do not travel at scales of their own.
    void set_scales(std::shared_ptr<const tensor::SpanScales> scales) { scales_ = std::move(scales); }
    [[nodiscard]] const std::shared_ptr<const tensor::SpanScales>& scales() const { return scales_; }

    // For errors: the operation, its size and its type.
    void set_called(std::string text) { called_ = std::move(text); }
    [[nodiscard]] const std::string& called() const { return called_; }
    [[nodiscard]] Operation operation() const { return operation_; }
    [[nodiscard]] Time begun() const { return begun_; }
    [[nodiscard]] Time deadline() const { return deadline_; }

    // Only before any channel gets a part. `callback` gets the first error of a part, on the thread that found the
    // error.
    void on_failure(std::function<void(const Error&)> callback) { failed_ = std::move(callback); }
    // A channel has ended its part; `error` is nullopt if the part succeeded.
    void finish_part(std::optional<Error> error);

  private:
    // Adds the time of a wait.
    class Waiting;

    Operation operation_;
    std::string called_;
    std::unique_ptr<protocol::Tensor> tensor_;
    std::vector<std::unique_ptr<protocol::Tensor>> beside_;
    std::shared_ptr<const tensor::SpanScales> scales_;
    std::vector<tensor::Slice> slices_;
    std::weak_ptr<WorkAttendant> attendant_;
    std::shared_ptr<OperationTimes> times_;  // nullptr: a part of an operation
    Time begun_;
    Time deadline_;
    std::atomic<std::uint32_t> parts_left_{0};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Error> error_;
    std::function<std::optional<Error>()> last_step_;
    std::function<void()> callback_;
    std::function<void(const Error&)> failed_;
};

using Handle = std::shared_ptr<Work>;

}  // namespace atp::comm
