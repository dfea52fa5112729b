// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "completions.h"
#include "staging.h"
#include "store_adapter.h"
#include "work.h"

namespace atp::python {

// What a group is told beside its communicator.
struct GroupOptions {
    bool hosts_switch = false;  // this process has the switch, and others may still need it
    // Called once for each operation and reason that the fallback executes. The reason is empty for an operation that
    // the network never executes.
    std::function<void(const std::string& operation, const std::string& reason)> delegated;
};

// PyTorch's backend `atp`: sums, broadcasts and barriers in the network, and everything else by another backend.
//
// Calling order: the constructor, with a communicator that was just formed; collectives, in the same order on every
// rank; shutdown(), or the destructor, which waits for nobody. Owns: the communicator and the thread that finishes
// works. Shares: the store and the fallback. Threads: any, but the order of collectives has to be the same among ranks.
// No call may hold Python's lock. Failure: works fail as NetworkWork says. After one has failed, so does every later
// one that goes through the network.
class ProcessGroupAtp final : public c10d::Backend {
  public:
    ProcessGroupAtp(std::shared_ptr<comm::Communicator> communicator, c10::intrusive_ptr<c10d::Store> store,
                    c10::intrusive_ptr<c10d::Backend> fallback, GroupOptions options);
    ~ProcessGroupAtp() override;

    const std::string getBackendName() const override { return "atp"; }
    void setSequenceNumberForGroup() override {}  // every rank counts from zero
    uint64_t getSequenceNumberForGroup() override { return sequence_; }

    // The base class has these four only since some release between 2.5 and 2.8, so they do not say `override`.
    // NOLINTBEGIN(modernize-use-override)
    c10::intrusive_ptr<Options> getBackendOptions() { return backend_options_; }
    void setTimeout(std::chrono::milliseconds timeout);
    // Ends at once what is under way, and the group.
    void abort();
    // Tells the others that this rank needs the switch no more; where this process has it, waits a while for them.
    void shutdown();
    // NOLINTEND(modernize-use-override)

    // Neither shut down nor aborted yet.
    [[nodiscard]] bool active() const { return communicator() != nullptr; }

    using WorkPointer = c10::intrusive_ptr<c10d::Work>;
    using Tensors = std::vector<at::Tensor>;
    using TensorLists = std::vector<Tensors>;

    WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    WorkPointer allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
    WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
    WorkPointer barrier(const c10d::BarrierOptions& options) override;

    // As Communicator's, in the types that keys can hold; the memory is copied both ways.
    void push(std::uint64_t key, const at::Tensor& tensor);
    void pull(std::uint64_t key, const at::Tensor& tensor);

    // The fallback's.
    WorkPointer allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
    WorkPointer allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
    WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
    WorkPointer allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                    const c10d::AllgatherOptions& options) override;
    WorkPointer allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                const c10d::AllgatherOptions& options) override;
    WorkPointer gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
    WorkPointer scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
    WorkPointer reduce_scatter(Tensors& outputs, TensorLists& inputs,
                               const c10d::ReduceScatterOptions& options) override;
    WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                     const c10d::ReduceScatterOptions& options) override;
    WorkPointer reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                const c10d::ReduceScatterOptions& options) override;
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
                                  c10d::OpType type, const char* title);
    WorkPointer hand_out(Result<comm::Handle> begun, std::vector<Staged> staged, c10d::OpType type, const char* title);
    [[nodiscard]] Time deadline_of(std::chrono::milliseconds timeout) const;
    c10::intrusive_ptr<c10d::Backend> delegate(const std::string& operation, const std::string& reason = {});
    void say_goodbye();
    void release();

    c10::intrusive_ptr<c10d::Backend> fallback_;
    c10::intrusive_ptr<Options> backend_options_;
    GroupOptions options_;
    StoreAdapter store_;
    Stager stager_;
    std::shared_ptr<Completions> completions_;
    mutable std::mutex mutex_;
    std::shared_ptr<comm::Communicator> communicator_;
    std::set<std::pair<std::string, std::string>> delegated_;  // operations and reasons that were reported
    bool shut_down_ = false;
    std::atomic<std::int64_t> timeout_ms_;
    std::atomic<std::uint64_t> sequence_{0};
};

// Throws std::invalid_argument where it is another kind of backend.
[[nodiscard]] ProcessGroupAtp& group_of(const c10::intrusive_ptr<c10d::Backend>& backend);

}  // namespace atp::python
