// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "completions.h"
#include "flight_recorder.h"
#include "staging.h"
#include "store/store.h"
#include "summable.h"
#include "work.h"

namespace atp::python {

// Called once for each pair of operation and reason that the fallback executes. The reason is empty if the network
// never executes that operation. Python implements it, and takes its lock.
using DelegationReceiver = void(const char* operation, const char* reason);

// Options of a group beside its communicator.
struct GroupOptions {
    std::shared_ptr<const FlightGroup> group;
    store::Store* store = nullptr;  // through which ranks say goodbye; lives until the group is inactive
    bool hosts_switch = false;      // this process hosts the switch, which other ranks may need after this one is done
    DelegationReceiver* delegated = nullptr;
};

// c10d::Backend. Only later releases declare getError() and the enumeration of its results.
template <class Base>
class BackendWithErrors : public Base {
  public:
    using Base::Base;
    [[nodiscard]] virtual std::optional<Error> failure() const = 0;
};
template <class Base>
requires requires(Base& base) { base.getError(); }
class BackendWithErrors<Base> : public Base {
  public:
    using Base::Base;
    [[nodiscard]] virtual std::optional<Error> failure() const = 0;

    using ErrorType = decltype(std::declval<Base&>().getError());
    ErrorType getError() override {
        const std::optional<Error> error = failure();
        if (!error) return ErrorType::SUCCESS;
        switch (error->reason) {
            case Reason::timed_out: return ErrorType::TIMEOUT;
            case Reason::unreachable:
            case Reason::refused: return ErrorType::REMOTE_ERROR;
            // an abort by this rank concerns no peer
            case Reason::closed: return error->peer.empty() ? ErrorType::COMM_ERROR : ErrorType::REMOTE_ERROR;
            default: return ErrorType::COMM_ERROR;
        }
    }
};

// PyTorch's backend `atp`: executes sums, reduce-scatters, all-gathers, broadcasts, barriers and small reductions of
// other kinds in the network, and all other operations with the fallback backend.
//
// Ownership: owns the communicator and Completions; shares the fallback.
// Calling order: the constructor, with a newly formed communicator; collectives, in the same order on every rank; then
//   shutdown() or abort(). The destructor waits for no other rank.
// Threads: any. The caller must release Python's lock before each call.
// Failure: works fail as NetworkWork documents. After one failure, every later operation in the network fails as well.
class ProcessGroupAtp final : public BackendWithErrors<c10d::Backend> {
  public:
    ProcessGroupAtp(std::shared_ptr<comm::Communicator> communicator, c10::intrusive_ptr<c10d::Backend> fallback,
                    GroupOptions options);
    ~ProcessGroupAtp() override;

    const std::string getBackendName() const override { return "atp"; }
    void setSequenceNumberForGroup() override {}  // every rank counts from 0
    uint64_t getSequenceNumberForGroup() override { return sequence_; }

    // The base class declares these four only since a release between 2.5 and 2.8, so they are without `override`.
    // NOLINTBEGIN(modernize-use-override)
    c10::intrusive_ptr<Options> getBackendOptions() { return backend_options_; }
    void setTimeout(std::chrono::milliseconds timeout);
    // Ends the group and its operations in flight at once.
    void abort();
    // Reports that this rank no longer needs the switch. If this process hosts it, waits up to 10 s for the other
    // ranks.
    void shutdown();
    // NOLINTEND(modernize-use-override)

    // Of the network. Throws after shutdown() or abort().
    [[nodiscard]] comm::RankCounters counters() const;
    // How often the fallback executed an operation, by its name.
    [[nodiscard]] std::map<std::string, std::uint64_t> delegations() const;
    // The first failure of an operation in the network; nullopt: none.
    [[nodiscard]] std::optional<Error> failure() const override { return completions_->failure(); }

    // False after abort(), and after shutdown() has returned, also if abort() was called meanwhile.
    [[nodiscard]] bool active() const;

    using WorkPointer = c10::intrusive_ptr<c10d::Work>;
    using Tensors = std::vector<at::Tensor>;
    using TensorLists = std::vector<Tensors>;

    WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
    WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
    WorkPointer barrier(const c10d::BarrierOptions& options) override;

    // Communicator::push() and pull() for the types that keys support. Both copy the tensor's memory.
    void push(std::uint64_t key, const at::Tensor& tensor);
    void pull(std::uint64_t key, const at::Tensor& tensor);

    // sharded.cc. The fallback executes those that the network cannot.
    WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
    WorkPointer allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
    WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
    WorkPointer allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                    const c10d::AllgatherOptions& options) override;
    WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                const c10d::AllgatherOptions& options) override;
    WorkPointer reduce_scatter(Tensors& outputs, TensorLists& inputs,
                               const c10d::ReduceScatterOptions& options) override;
    WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                     const c10d::ReduceScatterOptions& options) override;
    WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                const c10d::ReduceScatterOptions& options) override;

    // delegation.cc. The fallback executes these.
    WorkPointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    WorkPointer gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
    WorkPointer scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
    WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                              std::vector<int64_t>& input_sizes, const c10d::AllToAllOptions& options) override;
    WorkPointer alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
    WorkPointer send(Tensors& tensors, int to, int tag) override;
    WorkPointer recv(Tensors& tensors, int from, int tag) override;
    WorkPointer recvAnysource(Tensors& tensors, int tag) override;
    void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

  private:
    [[nodiscard]] std::shared_ptr<comm::Communicator> communicator() const;
    [[nodiscard]] std::shared_ptr<comm::Communicator> require_communicator() const;
    WorkPointer reduce_in_network(Tensors& tensors, const c10d::ReduceOp& operation, std::chrono::milliseconds timeout,
                                  c10d::OpType type, const char* title, bool awaited);
    // How PyTorch made a call.
    struct Call {
        std::chrono::milliseconds timeout;
        c10d::OpType type;
        const char* title;
        bool awaited;
    };
    WorkPointer fold_on_ranks(Tensors& tensors, const Fold& fold, const Call& call);
    WorkPointer gather_in_network(const Tensors& outputs, const Tensors& inputs, const Call& call);
    // `counts`: elements that each rank gets.
    WorkPointer scatter_in_network(const Tensors& outputs, const Tensors& inputs,
                                   const std::vector<std::size_t>& counts, const c10d::ReduceOp& operation,
                                   const Call& call);
    WorkPointer hand_out(Result<comm::Handle> begun, std::vector<Staged> staged, c10d::OpType type, const char* title,
                         bool awaited);
    [[nodiscard]] Time deadline_of(std::chrono::milliseconds timeout) const;
    c10::intrusive_ptr<c10d::Backend> delegate(const std::string& operation, const std::string& reason = {});
    void send_leave();
    void release();

    c10::intrusive_ptr<c10d::Backend> fallback_;
    c10::intrusive_ptr<Options> backend_options_;
    GroupOptions options_;
    Stager stager_;
    std::shared_ptr<Completions> completions_;
    mutable std::mutex mutex_;
    std::shared_ptr<comm::Communicator> communicator_;
    // Calls that the fallback executed, by operation and reason.
    std::map<std::pair<std::string, std::string>, std::uint64_t> delegated_;
    bool shut_down_ = false;
    bool uses_store_ = false;  // shutdown() waits for other ranks
    std::atomic<std::int64_t> timeout_ms_;
    std::atomic<std::uint64_t> sequence_{0};
};

}  // namespace atp::python
