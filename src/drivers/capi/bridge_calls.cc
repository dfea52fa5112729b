// SPDX-License-Identifier: Apache-2.0
// Operations for a process group in Python: as in the C interface, with what only PyTorch needs.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/bridge.h"
#include "capi/bridge_text.h"
#include "capi/communicator.h"
#include "net/clock.h"
#include "tensor/tensors.h"

namespace {

using atp::comm::Buffer;
using atp::comm::Communicator;
using atp::comm::Handle;
using atp::numeric::ElementType;
using atp::numeric::FoldOperation;
using atp::numeric::FoldType;

atp::Time after(double seconds) {
    return atp::net::now() + std::chrono::duration_cast<atp::Duration>(std::chrono::duration<double>(seconds));
}

atp::comm::Summing summing_of(const atp_bridge_call& call) {
    const auto reduction = static_cast<atp::comm::Reduction>(call.reduction);
    return reduction == atp::comm::Reduction::scaled ? atp::comm::Summing::scaled_by(call.factor) : reduction;
}

// The sum, which the caller divides: other ranks must not take it for a sum.
atp::Result<Handle> average_integers(Communicator& communicator, const std::vector<Buffer>& buffers, ElementType type,
                                     atp::Time deadline) {
    std::vector<std::unique_ptr<atp::protocol::Tensor>> tensors;
    std::uint64_t elements = 0;
    for (const Buffer& buffer : buffers) {
        if (buffer.elements == 0) continue;
        tensors.push_back(
            atp::tensor::make_sum_tensor(type, buffer.in, buffer.out, buffer.elements, communicator.scale(), 1.0));
        elements += buffer.elements;
    }
    return communicator.all_reduce(std::move(tensors), elements, type, atp::comm::Reduction::average, deadline);
}

atp::Result<Handle> all_reduce(Communicator& communicator, const atp_bridge_call& call, const atp_buffer* given,
                               atp::Time deadline) {
    std::vector<Buffer> buffers(call.count);
    for (std::size_t i = 0; i < call.count; ++i) buffers[i] = {given[i].in, given[i].out, given[i].elements};
    if (call.reduction > static_cast<std::int32_t>(atp::comm::Reduction::scaled)) {
        return communicator.all_reduce(buffers, static_cast<FoldType>(call.type),
                                       static_cast<FoldOperation>(call.reduction), deadline);
    }
    const auto type = static_cast<ElementType>(call.type);
    const auto summing = summing_of(call);
    if (summing.reduction == atp::comm::Reduction::average && atp::numeric::is_integer(type)) {
        return average_integers(communicator, buffers, type, deadline);
    }
    return communicator.all_reduce(buffers, type, summing, deadline);
}

atp::Result<Handle> begin(Communicator& communicator, const atp_bridge_call& call, const atp_buffer* buffers,
                          const std::size_t* shares) {
    const atp::Time deadline = after(call.timeout_s);
    if (call.operation == ATP_OPERATION_ALL_REDUCE) return all_reduce(communicator, call, buffers, deadline);
    if (call.operation == ATP_OPERATION_BARRIER) return communicator.barrier(deadline);
    const atp_buffer& buffer = *buffers;
    const auto type = static_cast<ElementType>(call.type);
    switch (call.operation) {
        case ATP_OPERATION_BROADCAST: return communicator.broadcast(buffer.out, buffer.elements, call.root, deadline);
        case ATP_OPERATION_REDUCE_SCATTER:
            return communicator.reduce_scatter(buffer.in, buffer.out, {shares, communicator.world()}, type,
                                               summing_of(call), deadline);
        case ATP_OPERATION_ALL_GATHER:
            return communicator.all_gather(buffer.in, buffer.out, {shares, communicator.world()}, deadline);
        default:
            return communicator.reduce({buffer.in, buffer.out, buffer.elements}, type, summing_of(call), call.root,
                                       deadline);
    }
}

}  // namespace

extern "C" {

int32_t atp_bridge_begin(const atp_communicator* communicator, const struct atp_bridge_call* call,
                         const struct atp_buffer* buffers, const size_t* shares, atp_work** work,
                         struct atp_bridge_text* text) {
    return atp::capi::in_bridge(text, [&]() -> atp::Result<void> {
        auto handed = std::make_unique<atp_work>();
        auto begun = begin(*communicator->communicator, *call, buffers, shares);
        if (!begun) return tl::unexpected(begun.error());
        handed->handle = *std::move(begun);
        if (call->awaited == 0) handed->handle->continue_without_caller();
        *work = handed.release();
        return {};
    });
}

int32_t atp_bridge_wait(const atp_work* work, double seconds, struct atp_bridge_text* text) {
    std::optional<atp::Result<void>> outcome;
    const std::int32_t failed = atp::capi::in_bridge(text, [&] {
        outcome = work->handle->wait_until(after(seconds));
        return outcome.value_or(atp::Result<void>());
    });
    return failed == 0 && !outcome ? 2 : failed;
}

void atp_bridge_give_up(const atp_work* work, int64_t timeout_ms, struct atp_bridge_text* text) {
    static_cast<void>(atp::capi::in_bridge(text, [&]() -> atp::Result<void> {
        const std::string limit = std::to_string(timeout_ms);
        return tl::unexpected(
            atp::Error{.operation = work->handle->operation(),
                       .reason = atp::Reason::timed_out,
                       .elapsed = atp::net::now() - work->handle->begun(),
                       // errors.md, calls, timed out: `work.wait(timeout)` ended first
                       .text = "wait() ended after its timeout of " + limit + " ms; the operation still runs"});
    }));
}

int32_t atp_bridge_push(const atp_communicator* communicator, uint64_t key, const void* values, size_t elements,
                        int32_t type, double timeout_s, struct atp_bridge_text* text) {
    return atp::capi::in_bridge(text, [&] {
        return communicator->communicator->push(key, values, elements, static_cast<ElementType>(type),
                                                after(timeout_s));
    });
}

int32_t atp_bridge_pull(const atp_communicator* communicator, uint64_t key, void* values, size_t elements, int32_t type,
                        struct atp_bridge_text* text) {
    return atp::capi::in_bridge(
        text, [&] { return communicator->communicator->pull(key, values, elements, static_cast<ElementType>(type)); });
}

uint64_t atp_bridge_longest_fold(void) { return atp::comm::longest_fold; }

}  // extern "C"
