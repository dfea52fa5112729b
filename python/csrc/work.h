// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/work.h"
#include "completions.h"
#include "flight_recorder.h"
#include "staging.h"

namespace atp::python {

// One operation in the network as a work of PyTorch.
//
// Ownership: shares the operation and its tensors until both are done.
// Calling order: construct it from the operation's handle, then call watch(). The future is complete before wait()
//   returns or throws the operation's error, and before isCompleted() returns true.
// Threads: any. Callbacks of the future run on the thread that completes it: one in wait(), or one of Completions.
//   wait() does not wait for callbacks on another thread. A callback may wait for this work and for others, and may
//   destroy the group.
// Failure: wait() throws DistBackendError with the operation, the peer and the elapsed time; the future gets the same
//   error. If wait() reaches its own timeout, or a signal handler raises, the operation stays in flight.
class NetworkWork final : public c10d::Work {
  public:
    // `longest`: the timeout of the operation.
    NetworkWork(int rank, c10d::OpType type, const char* title, std::uint64_t sequence, std::vector<Staged> staged,
                comm::Handle operation, std::shared_ptr<Completions> completions,
                std::shared_ptr<const FlightGroup> group, std::chrono::milliseconds longest);
    ~NetworkWork() override;

    // `awaited`: the caller waits for the work at once. No other thread then takes part, unless wait() ends early or
    // the future is requested.
    static void watch(const c10::intrusive_ptr<NetworkWork>& work, bool awaited);

    bool wait(std::chrono::milliseconds timeout) override;
    bool isCompleted() override {
        need_future();
        return future_->completed();
    }
    std::vector<at::Tensor> result() override { return outputs(); }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
        need_future();
        return future_;
    }
    std::uint64_t getSequencenumber() const override { return sequence_; }

    // After the work succeeded: the scale of each cell of its elements (span_scales.h). Nullopt: they were not sent
    // at such scales.
    [[nodiscard]] std::optional<at::Tensor> scales() const;
    // Elements of each cell but the last. Nullopt: there are no cells.
    [[nodiscard]] std::optional<std::uint64_t> cell() const;

  private:
    [[nodiscard]] std::vector<at::Tensor> outputs() const;
    [[noreturn]] void give_up(std::chrono::milliseconds timeout) const;
    static void post(const c10::intrusive_ptr<NetworkWork>& work);
    void need_future();
    void settle();
    void complete_future();

    std::uint64_t sequence_;
    std::vector<Staged> staged_;
    comm::Handle operation_;
    std::shared_ptr<Completions> completions_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    std::shared_ptr<const FlightGroup> group_;
    FlightRecord record_;
    std::once_flag settled_;
    std::atomic<bool> completing_{false};
    std::atomic<bool> awaited_{false};  // wait() completes the future
};

}  // namespace atp::python
