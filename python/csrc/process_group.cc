// SPDX-License-Identifier: Apache-2.0
#include "process_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "capi/raised_errors.h"
#include "interpreter.h"
#include "net/clock.h"

namespace atp::python {
namespace {

// Longest time for which the process that hosts the switch waits for the other ranks at shutdown.
constexpr Duration longest_goodbye = std::chrono::seconds(10);

// Neither Gloo nor a fold has averages or factors. `options` then ask for the sum of the tensors, which this function
// multiplies: float64 is precise enough.
template <class CollectiveOptions>
CollectiveOptions as_sum_of_parts(std::vector<at::Tensor>& tensors, CollectiveOptions options, int ranks) {
    const bool is_average = options.reduceOp == c10d::ReduceOp::AVG;
    const bool is_scaled = options.reduceOp == c10d::ReduceOp::PREMUL_SUM;
    if (!(is_average || is_scaled) || tensors.empty()) return options;
    if (tensors.front().scalar_type() != at::kDouble) return options;
    const at::NoGradGuard no_grad;
    for (at::Tensor& tensor : tensors) {
        is_average ? tensor.div_(ranks) : tensor.mul_(factor_of(options.reduceOp));
    }
    options.reduceOp = c10d::ReduceOp::SUM;
    return options;
}

// Backends of older releases lack these functions: see process_group.h.
template <class Backend>
void set_timeout_of(Backend& backend, std::chrono::milliseconds timeout) {
    if constexpr (requires { backend.setTimeout(timeout); }) backend.setTimeout(timeout);
}

template <class Backend>
void abort_now(Backend& backend) {
    if constexpr (requires { backend.abort(); }) backend.abort();
}

std::string goodbye_key(int rank) { return fmt::format("goodbye-{}", rank); }

}  // namespace

ProcessGroupAtp::ProcessGroupAtp(std::shared_ptr<comm::Communicator> communicator,
                                 c10::intrusive_ptr<c10d::Backend> fallback, GroupOptions options)
    : BackendWithErrors(static_cast<int>(communicator->rank()), static_cast<int>(communicator->world())),
      fallback_(std::move(fallback)),
      options_(std::move(options)),
      completions_(Completions::start()),
      timeout_ms_(std::chrono::duration_cast<std::chrono::milliseconds>(communicator->options().timeout).count()) {
    communicator_ = std::move(communicator);
    backend_options_ = c10::make_intrusive<Options>("atp", std::chrono::milliseconds(timeout_ms_));
    init();
}

// A callback that Completions runs may wait for Python's lock, so release() must not hold it.
ProcessGroupAtp::~ProcessGroupAtp() {
    const WithoutLock no_lock;
    release();
}

// Ends the communicator, which ends its operations, then waits until Completions has finished their works.
void ProcessGroupAtp::release() {
    std::shared_ptr<comm::Communicator> communicator;
    c10::intrusive_ptr<c10d::Backend> fallback;
    {
        const std::scoped_lock lock(mutex_);
        communicator = std::exchange(communicator_, nullptr);
        fallback = std::move(fallback_);  // its threads must end before the process does
    }
    if (communicator) communicator->abort();
    communicator.reset();
    if (completions_) completions_->stop();
}

void ProcessGroupAtp::setTimeout(std::chrono::milliseconds timeout) {
    timeout_ms_ = timeout.count();
    backend_options_->timeout = timeout;
    const std::scoped_lock lock(mutex_);
    if (fallback_) set_timeout_of(*fallback_, timeout);
}

void ProcessGroupAtp::abort() {
    completions_->note_failure(
        {.operation = Operation::wait, .reason = Reason::closed, .text = "the process group was aborted"});
    c10::intrusive_ptr<c10d::Backend> fallback;
    {
        const std::scoped_lock lock(mutex_);
        fallback = fallback_;
    }
    if (fallback) abort_now(*fallback);
    release();
}

void ProcessGroupAtp::shutdown() {
    bool sends_leave = false;
    {
        const std::scoped_lock lock(mutex_);
        if (std::exchange(shut_down_, true)) return;
        sends_leave = communicator_ != nullptr && !completions_->failed();
        uses_store_ = sends_leave;
    }
    if (sends_leave) send_leave();
    release();
    const std::scoped_lock lock(mutex_);
    uses_store_ = false;
}

bool ProcessGroupAtp::active() const {
    const std::scoped_lock lock(mutex_);
    return communicator_ != nullptr || uses_store_;
}

// A rank that has its sum does not know whether the other ranks have theirs, and they need the switch for it.
void ProcessGroupAtp::send_leave() {
    if (!options_.hosts_switch) {
        static_cast<void>(
            options_.store->set(goodbye_key(getRank()), "goodbye"));  // best effort: this rank leaves in any case
        return;
    }
    std::vector<std::string> keys;
    for (int rank = 0; rank < getSize(); ++rank) {
        if (rank != getRank()) keys.push_back(goodbye_key(rank));
    }
    const Duration wait = std::min<Duration>(std::chrono::milliseconds(timeout_ms_), longest_goodbye);
    if (!keys.empty()) static_cast<void>(options_.store->wait(keys, net::now() + wait));
}

std::shared_ptr<comm::Communicator> ProcessGroupAtp::communicator() const {
    const std::scoped_lock lock(mutex_);
    return communicator_;
}

std::shared_ptr<comm::Communicator> ProcessGroupAtp::require_communicator() const {
    auto communicator = this->communicator();
    if (!communicator) C10_THROW_ERROR(DistBackendError, "atp: this process group was shut down");
    return communicator;
}

comm::RankCounters ProcessGroupAtp::counters() const { return require_communicator()->rank_counters(); }

std::map<std::string, std::uint64_t> ProcessGroupAtp::delegations() const {
    const std::scoped_lock lock(mutex_);
    std::map<std::string, std::uint64_t> calls;
    for (const auto& [delegation, count] : delegated_) calls[delegation.first] += count;
    return calls;
}

Time ProcessGroupAtp::deadline_of(std::chrono::milliseconds timeout) const {
    return net::now() + (timeout.count() > 0 ? timeout : std::chrono::milliseconds(timeout_ms_));
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::hand_out(Result<comm::Handle> begun, std::vector<Staged> staged,
                                                       c10d::OpType type, const char* title, bool awaited) {
    if (!begun) C10_THROW_ERROR(DistBackendError, capi::message_of(begun.error()));
    auto work =
        c10::make_intrusive<NetworkWork>(getRank(), type, title, sequence_++, std::move(staged), *std::move(begun),
                                         completions_, options_.group, std::chrono::milliseconds(timeout_ms_));
    NetworkWork::watch(work, awaited);
    return work;
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::reduce_in_network(Tensors& tensors, const c10d::ReduceOp& operation,
                                                                std::chrono::milliseconds timeout, c10d::OpType type,
                                                                const char* title, bool awaited) {
    const auto communicator = require_communicator();
    const at::ScalarType type_in_network = summed_type(tensors.front().scalar_type(), operation);
    std::vector<Staged> staged = stage(tensors, type_in_network);
    const auto element = *element_type_of(type_in_network);
    auto begun = stager_.all_reduce(*communicator, staged, element, summing_of(operation), deadline_of(timeout));
    return hand_out(std::move(begun), std::move(staged), type, title, awaited);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::fold_on_ranks(Tensors& tensors, const Fold& fold, const Call& call) {
    const auto communicator = require_communicator();
    std::vector<Staged> staged = stage(tensors, tensors.front().scalar_type());
    bring_to_host(staged);
    auto begun = communicator->all_reduce(buffers_of(staged), fold.type, fold.operation, deadline_of(call.timeout));
    return hand_out(std::move(begun), std::move(staged), call.type, call.title, call.awaited);
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
    const bool is_one = tensors.size() == 1;
    const auto why = is_one ? obstacle(tensors, options.reduceOp) : "several tensors in one call";
    if (!why) {
        return reduce_in_network(tensors, options.reduceOp, options.timeout, c10d::OpType::ALLREDUCE, "atp:all_reduce",
                                 is_awaited(options));
    }
    const auto fold = is_one ? fold_of(tensors, options.reduceOp) : std::nullopt;
    const auto own = as_sum_of_parts(tensors, options, getSize());
    if (!fold || !fold->fits) return delegate("all_reduce", reason_of(*why, fold))->allreduce(tensors, own);
    return fold_on_ranks(tensors, *fold,
                         {options.timeout, c10d::OpType::ALLREDUCE, "atp:all_reduce", is_awaited(options)});
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::allreduce_coalesced(Tensors& tensors,
                                                                  const c10d::AllreduceCoalescedOptions& options) {
    const auto why = obstacle(tensors, options.reduceOp);
    if (!why) {
        return reduce_in_network(tensors, options.reduceOp, options.timeout, c10d::OpType::ALLREDUCE_COALESCED,
                                 "atp:all_reduce_coalesced", is_awaited(options));
    }
    const auto fold = fold_of(tensors, options.reduceOp);
    const auto own = as_sum_of_parts(tensors, options, getSize());
    if (!fold || !fold->fits) {
        return delegate("all_reduce_coalesced", reason_of(*why, fold))->allreduce_coalesced(tensors, own);
    }
    return fold_on_ranks(
        tensors, *fold,
        {options.timeout, c10d::OpType::ALLREDUCE_COALESCED, "atp:all_reduce_coalesced", is_awaited(options)});
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
    if (tensors.size() != 1 || !lies_in_memory(tensors.front())) {
        return delegate("broadcast", "several tensors, or a tensor not dense on CPU or CUDA")
            ->broadcast(tensors, options);
    }
    const auto communicator = require_communicator();
    std::vector<Staged> staged = stage(tensors, tensors.front().scalar_type());
    bring_to_host(staged);
    const at::Tensor& host = staged.front().host;
    auto begun = communicator->broadcast(host.data_ptr(), host.nbytes(), static_cast<std::uint32_t>(options.rootRank),
                                         deadline_of(options.timeout));
    return hand_out(std::move(begun), std::move(staged), c10d::OpType::BROADCAST, "atp:broadcast", is_awaited(options));
}

ProcessGroupAtp::WorkPointer ProcessGroupAtp::barrier(const c10d::BarrierOptions& options) {
    const auto communicator = require_communicator();
    return hand_out(communicator->barrier(deadline_of(options.timeout)), {}, c10d::OpType::BARRIER, "atp:barrier",
                    is_awaited(options));
}

}  // namespace atp::python
