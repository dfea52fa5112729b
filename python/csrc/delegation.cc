// SPDX-License-Identifier: Apache-2.0
// Operations that the network never executes: the fallback backend does.
#include <utility>

#include "process_group.h"

namespace atp::python {

c10::intrusive_ptr<c10d::Backend> ProcessGroupAtp::delegate(const std::string& operation, const std::string& reason) {
    c10::intrusive_ptr<c10d::Backend> fallback;
    bool first = false;
    {
        const std::scoped_lock lock(mutex_);
        fallback = fallback_;
        first = ++delegated_[{operation, reason}] == 1;
    }
    if (!fallback) C10_THROW_ERROR(DistBackendError, "atp: this process group was shut down");
    if (first && options_.delegated != nullptr) options_.delegated(operation.c_str(), reason.c_str());
    ++sequence_;
    return fallback;
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::allreduce_sparse(Tensors& tensors,
                                                               const c10d::AllreduceOptions& options) {
    return delegate("all_reduce", "sparse tensors")->allreduce_sparse(tensors, options);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::gather(TensorLists& outputs, Tensors& inputs,
                                                     const c10d::GatherOptions& options) {
    return delegate("gather")->gather(outputs, inputs, options);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::scatter(Tensors& outputs, TensorLists& inputs,
                                                      const c10d::ScatterOptions& options) {
    return delegate("scatter")->scatter(outputs, inputs, options);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                            std::vector<int64_t>& output_sizes,
                                                            std::vector<int64_t>& input_sizes,
                                                            const c10d::AllToAllOptions& options) {
    return delegate("all_to_all_single")->alltoall_base(output, input, output_sizes, input_sizes, options);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::alltoall(Tensors& outputs, Tensors& inputs,
                                                       const c10d::AllToAllOptions& options) {
    return delegate("all_to_all")->alltoall(outputs, inputs, options);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::send(Tensors& tensors, int to, int tag) {
    return delegate("send")->send(tensors, to, tag);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::recv(Tensors& tensors, int from, int tag) {
    return delegate("recv")->recv(tensors, from, tag);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::recvAnysource(Tensors& tensors, int tag) {
    return delegate("recv")->recvAnysource(tensors, tag);
}

void ProcessGroupAtp::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
    delegate("monitored_barrier")->monitoredBarrier(options, wait_all_ranks);
}

}  // namespace atp::python
