// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "capi/raised_errors.h"
#include "interpreter.h"
#include "net/clock.h"

namespace atp::python {
namespace {

std::exception_ptr exception_of(const Error& error) {
    return std::make_exception_ptr(
        c10::DistBackendError({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, capi::message_of(error)));
}

c10::intrusive_ptr<c10::ivalue::Future> make_future(std::vector<c10::Device> devices) {
    return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()), std::move(devices));
}

}  // namespace

NetworkWork::NetworkWork(int rank, c10d::OpType type, const char* title, std::uint64_t sequence,
                         std::vector<Staged> staged, comm::Handle operation, std::shared_ptr<Completions> completions,
                         std::shared_ptr<const FlightGroup> group, std::chrono::milliseconds longest)
    : c10d::Work(rank, type, title, inputs_of(staged)),
      sequence_(sequence),
      staged_(std::move(staged)),
      operation_(std::move(operation)),
      completions_(std::move(completions)),
      future_(make_future(devices_of(staged_))),
      group_(std::move(group)),
      record_(*group_, sequence, title, tensors_of(staged_), longest) {}

// A device may still read or write the tensors' memory, which the members below release.
NetworkWork::~NetworkWork() { wait_for_devices(staged_); }

// The operation keeps the work, and with it the memory of the tensors, until it is done.
void NetworkWork::watch(const c10::intrusive_ptr<NetworkWork>& work, bool awaited) {
    work->awaited_ = awaited;
    const comm::Handle operation = work->operation_;
    operation->set_callback([work] {
        if (!work->awaited_) post(work);
    });
    if (!awaited) operation->continue_without_caller();
}

void NetworkWork::post(const c10::intrusive_ptr<NetworkWork>& work) {
    work->completions_->post([work] {
        work->settle();
        work->complete_future();
    });
}

// If the operation ends meanwhile, both post, of which one has an effect.
void NetworkWork::need_future() {
    if (!awaited_.exchange(false)) return;
    if (!operation_->done()) return operation_->continue_without_caller();
    post(c10::intrusive_ptr<NetworkWork>::unsafe_reclaim_from_nonowning(this));
}

bool NetworkWork::wait(std::chrono::milliseconds timeout) {
    struct EarlyEnd {
        explicit EarlyEnd(NetworkWork& of) : work(&of) {}
        ~EarlyEnd() {
            if (work != nullptr) work->need_future();
        }
        EarlyEnd(const EarlyEnd&) = delete;
        EarlyEnd& operator=(const EarlyEnd&) = delete;
        NetworkWork* work;
    };
    EarlyEnd early(*this);
    const Time until = timeout.count() > 0 ? net::now() + timeout : never;
    while (!operation_->wait_until(std::min(until, net::now() + signal_interval))) {
        handle_signals();
        if (net::now() >= until) give_up(timeout);
    }
    early.work = nullptr;
    settle();
    complete_future();
    if (exception_) std::rethrow_exception(exception_);
    return true;
}

void NetworkWork::give_up(std::chrono::milliseconds timeout) const {
    throw c10::DistBackendError(
        {__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)},
        capi::message_of({.operation = operation_->operation(),
                          .reason = Reason::timed_out,
                          .elapsed = net::now() - operation_->begun(),
                          .text = "wait() ended after its timeout of " + std::to_string(timeout.count()) +
                                  " ms; the operation still runs"}));
}

std::optional<at::Tensor> NetworkWork::scales() const {
    const auto& scales = operation_->scales();
    if (scales == nullptr) return std::nullopt;
    at::Tensor values = at::empty({static_cast<std::int64_t>(scales->cells())}, at::kFloat);
    auto* const value = values.mutable_data_ptr<float>();
    for (std::uint64_t cell = 0; cell < scales->cells(); ++cell) {
        value[cell] = static_cast<float>(scales->units(cell));
    }
    return values;
}

std::optional<std::uint64_t> NetworkWork::cell() const {
    const auto& scales = operation_->scales();
    return scales == nullptr ? std::nullopt : std::optional(scales->cell());
}

std::vector<at::Tensor> NetworkWork::outputs() const { return tensors_of(staged_); }

// Runs once, in the first thread that needs the result: one in wait(), which then needs no wake-up, or one of
// Completions.
void NetworkWork::settle() {
    std::call_once(settled_, [this] {
        std::exception_ptr exception;
        const auto outcome = operation_->outcome();
        if (outcome) {
            try {
                deliver(staged_);
            } catch (...) {
                exception = std::current_exception();
            }
        } else {
            exception = exception_of(outcome.error());
            completions_->note_failure(outcome.error());
        }
        record_.end(!exception);
        if (exception) write_flight_records_after_failure(*group_);
        finish(exception);
    });
}

// A thread in wait() and one of Completions may both call this. The first completes the future and runs its callbacks.
// The other waits until the future is complete, but not for the callbacks, which may wait for this work too.
void NetworkWork::complete_future() {
    if (completing_.exchange(true)) {
        future_->wait();
        return;
    }
    const CallbackScope callbacks;
    if (exception_) {
        future_->setError(exception_);
    } else {
        // the future records the current stream as the one that produces its value
        const PooledStream stream(staged_);
        future_->markCompleted(c10::IValue(outputs()));
    }
}

}  // namespace atp::python
