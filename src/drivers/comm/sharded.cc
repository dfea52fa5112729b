// SPDX-License-Identifier: Apache-2.0
// Operations whose parts have owners: reduce-scatter, all-gather and reduce.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "comm/communicator.h"
#include "net/clock.h"
#include "tensor/tensors.h"

namespace atp::comm {
namespace {

Failure refuse(Operation operation, Reason reason, std::string text) {
    return fail(operation, reason, {}, std::move(text));
}

std::uint32_t detail_of_blocks(std::uint32_t detail, std::span<const std::size_t> sizes) {
    for (const std::size_t size : sizes) detail = mix(detail + static_cast<std::uint32_t>(size));
    return detail;
}

std::size_t sum_of(std::span<const std::size_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

// "5 + 7": what each rank gets or sends. Other ranks may read it if they called something else.
std::string text_of(std::span<const std::size_t> sizes) {
    if (std::ranges::all_of(sizes, [&](std::size_t size) { return size == sizes.front(); })) {
        return fmt::format("{} times {}", sizes.size(), sizes.front());
    }
    constexpr std::size_t most_listed = 4;
    const auto listed = sizes.first(std::min(sizes.size(), most_listed));
    return fmt::format("{}{}", fmt::join(listed, " + "), sizes.size() > most_listed ? " + ..." : "");
}

std::optional<std::string> objection_to(numeric::ElementType type, Reduction reduction) {
    if (reduction == Reduction::sum || !numeric::is_integer(type)) return std::nullopt;
    return fmt::format("elements of type {} have no average: use a sum, and divide the result", to_string(type));
}

}  // namespace

// A call as submit_dealt() needs it.
struct Communicator::DealtCall {
    Operation operation;
    numeric::ElementType type = numeric::ElementType::int32;
    std::vector<tensor::DealtTensor::Block> blocks;
    std::uint64_t elements = 0;
    std::uint32_t detail = 0;
    std::string called;
};

tensor::DealtTensor::Rules Communicator::rules_of_deal(bool gathers, std::uint8_t form) const {
    const bool on_one_host = host_ != nullptr && !chunks_;
    return {.rank = static_cast<std::uint16_t>(rank_),
            .gathers = gathers,
            .longest = on_one_host ? host_->chunk_lanes() : fragment_elements(form),
            .in_memory = on_one_host};
}

// Other hosts know only the owner's host.
tensor::DealtTensor::Block Communicator::block_of(std::unique_ptr<protocol::Tensor> tensor, std::uint32_t owner) const {
    return {.tensor = std::move(tensor),
            .owner = static_cast<std::uint16_t>(owner),
            .member = members_.empty() ? static_cast<std::uint16_t>(owner) : members_[owner]};
}

Result<Handle> Communicator::submit_dealt(DealtCall call, Time deadline) {
    const bool gathers = call.operation == Operation::all_gather;
    const bool is_plain = gathers || numeric::is_integer(call.type);
    const std::uint8_t form = is_plain ? std::uint8_t{ATP_DTYPE_INT32} : fitter_.form_of(call.type, call.elements);
    const tensor::DealtTensor::Rules rules = rules_of_deal(gathers, form);
    OperationCall own{.operation = call.operation,
                      .type = call.type,
                      .elements = call.elements,
                      .detail = call.detail,
                      .text = std::move(call.called)};
    const std::size_t blocks = call.blocks.size();
    const std::scoped_lock lock(order_);
    tensor::NumberFitter::Fitted fitted;
    if (is_plain || !fits_numbers()) {
        fitted.tensor = std::make_unique<tensor::DealtTensor>(std::move(call.blocks), rules);
    } else {
        fitted = fitter_.fit_dealt(std::move(call.blocks), rules, call.type, kind_of(own));
    }
    const std::uint64_t fragment = fitted.tensor->spans().length;
    own.alignment = fragment == 0 ? fitted.tensor->size() : blocks * fragment;  // the owners begin again
    return submit_fitted(own, std::move(fitted), deadline);
}

Result<Handle> Communicator::reduce_scatter(const void* in, void* out, std::span<const std::size_t> counts,
                                            numeric::ElementType type, Reduction reduction, Time deadline) {
    constexpr Operation operation = Operation::reduce_scatter;
    if (const auto objection = objection_to(type, reduction)) {
        return refuse(operation, Reason::unsupported, *objection);
    }
    if (counts.size() != world_) {
        return refuse(operation, Reason::malformed,
                      // errors.md, calls, malformed
                      fmt::format("{} counts for {} ranks: pass one for each rank", counts.size(), world_));
    }
    const std::size_t elements = sum_of(counts);
    if (elements == 0) return std::make_shared<Work>(operation, nullptr, net::now(), net::now());
    if (in == nullptr || (out == nullptr && counts[rank_] != 0)) {
        return refuse(operation, Reason::malformed, "a buffer is NULL, but its size is above 0");
    }
    log_type(type);
    const double by = numeric::is_integer(type) ? 1.0 : factor(reduction);
    DealtCall call{.operation = operation,
                   .type = type,
                   .blocks = {},
                   .elements = elements,
                   .detail = detail_of_blocks(detail_of(type, reduction), counts),
                   .called = fmt::format("{} of {} {} ({})", to_string(operation), text_of(counts), to_string(type),
                                         reduction == Reduction::sum ? "sum" : "average")};
    const auto* block = static_cast<const std::byte*>(in);
    for (std::uint32_t owner = 0; owner < world_; ++owner) {
        void* const result = owner == rank_ ? out : nullptr;
        call.blocks.push_back(
            block_of(tensor::make_sum_tensor(type, block, result, counts[owner], scale(), by), owner));
        block += counts[owner] * numeric::bytes_of(type);
    }
    return submit_dealt(std::move(call), deadline);
}

Result<Handle> Communicator::all_gather(const void* in, void* out, std::span<const std::size_t> bytes, Time deadline) {
    constexpr Operation operation = Operation::all_gather;
    if (bytes.size() != world_) {
        return refuse(operation, Reason::malformed,
                      // errors.md, calls, malformed
                      fmt::format("{} sizes for {} ranks: pass one for each rank", bytes.size(), world_));
    }
    const std::size_t all = sum_of(bytes);
    if (all == 0) return std::make_shared<Work>(operation, nullptr, net::now(), net::now());
    if (out == nullptr || (in == nullptr && bytes[rank_] != 0)) {
        return refuse(operation, Reason::malformed, "a buffer is NULL, but its size is above 0");
    }
    DealtCall call{.operation = operation,
                   .blocks = {},
                   .elements = all,
                   .detail = detail_of_blocks(0, bytes),
                   .called = fmt::format("{} of {} bytes", to_string(operation), text_of(bytes))};
    auto* block = static_cast<std::byte*>(out);
    for (std::uint32_t owner = 0; owner < world_; ++owner) {
        const bool mine = owner == rank_;
        if (mine && block != in && bytes[owner] != 0) std::memcpy(block, in, bytes[owner]);
        call.blocks.push_back(
            block_of(tensor::make_broadcast_tensor(mine ? in : nullptr, mine ? nullptr : block, bytes[owner]), owner));
        block += bytes[owner];
    }
    return submit_dealt(std::move(call), deadline);
}

Result<Handle> Communicator::reduce(const Buffer& buffer, numeric::ElementType type, Reduction reduction,
                                    std::uint32_t root, Time deadline) {
    constexpr Operation operation = Operation::reduce;
    if (const auto objection = objection_to(type, reduction)) {
        return refuse(operation, Reason::unsupported, *objection);
    }
    if (root >= world_) {
        return refuse(operation, Reason::malformed,
                      fmt::format("root {} is out of range; a world of {} ranks counts from 0", root, world_));
    }
    if (buffer.elements == 0) return std::make_shared<Work>(operation, nullptr, net::now(), net::now());
    if (buffer.in == nullptr || (buffer.out == nullptr && root == rank_)) {
        return refuse(operation, Reason::malformed, "a buffer is NULL, but its size is above 0");
    }
    log_type(type);
    const double by = numeric::is_integer(type) ? 1.0 : factor(reduction);
    DealtCall call{.operation = operation,
                   .type = type,
                   .blocks = {},
                   .elements = buffer.elements,
                   .detail = mix(detail_of(type, reduction) + root),
                   .called = fmt::format("{} of {} {} to root {} ({})", to_string(operation), buffer.elements,
                                         to_string(type), root, reduction == Reduction::sum ? "sum" : "average")};
    void* const result = root == rank_ ? buffer.out : nullptr;
    call.blocks.push_back(
        block_of(tensor::make_sum_tensor(type, buffer.in, result, buffer.elements, scale(), by), root));
    return submit_dealt(std::move(call), deadline);
}

}  // namespace atp::comm
