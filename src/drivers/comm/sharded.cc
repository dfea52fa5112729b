// SPDX-License-Identifier: Apache-2.0
// Operations whose parts have owners: reduce-scatter, all-gather, reduce, and an all-reduce that gathers.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "comm/communicator.h"
#include "endpoint/channel_text.h"
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

// "5 + 7". Other ranks may read it if they called something else.
std::string list_of(std::span<const std::size_t> sizes) {
    constexpr std::size_t most_listed = 4;
    const auto listed = sizes.first(std::min(sizes.size(), most_listed));
    return fmt::format("{}{}", fmt::join(listed, " + "), sizes.size() > most_listed ? " + ..." : "");
}

// What each rank gets or sends.
std::string text_of(std::span<const std::size_t> sizes) {
    if (std::ranges::any_of(sizes, [&](std::size_t size) { return size != sizes.front(); })) return list_of(sizes);
    return fmt::format("{} times {}", sizes.size(), sizes.front());
}

std::optional<std::string> objection_to(numeric::ElementType type, const Summing& summing) {
    if (summing.reduction == Reduction::sum || !numeric::is_integer(type)) return std::nullopt;
    return fmt::format("elements of type {} have no average: use a sum, and divide the result", to_string(type));
}

// Precedes the elements of a rank, because an all-gather of few bytes does not compare what the ranks call.
struct FoldHeader {
    std::uint32_t detail = 0;
    numeric::FoldType type = numeric::FoldType::float32;
    numeric::FoldOperation operation = numeric::FoldOperation::sum;
    std::uint16_t zero = 0;

    [[nodiscard]] bool operator==(const FoldHeader&) const = default;
};
static_assert(sizeof(FoldHeader) == 8, "elements of 8 bytes stay aligned");

// The header and the elements of all ranks, one rank's behind those of the one before.
struct Gathered {
    FoldHeader header{};
    numeric::FoldType type = numeric::FoldType::float32;
    numeric::FoldOperation operation = numeric::FoldOperation::sum;
    std::vector<Buffer> buffers{};
    std::size_t bytes_of_rank = 0;
    std::vector<std::byte> bytes{};

    [[nodiscard]] std::span<std::byte> of_rank(std::size_t rank) {
        return std::span(bytes).subspan(rank * bytes_of_rank, bytes_of_rank);
    }
    void read(std::span<std::byte> own) const {
        std::memcpy(own.data(), &header, sizeof header);
        own = own.subspan(sizeof header);
        for (const Buffer& buffer : buffers) {
            const std::size_t size = buffer.elements * bytes_of(type);
            std::memcpy(own.data(), buffer.in, size);
            own = own.subspan(size);
        }
    }
    std::optional<Error> fold_all(std::size_t ranks) {
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            FoldHeader other;
            std::memcpy(&other, of_rank(rank).data(), sizeof other);
            if (other == header) continue;
            return Error{.operation = Operation::all_reduce,
                         .reason = Reason::mismatched,
                         .peer = fmt::format("rank {}", rank),
                         // errors.md, none: as the text of a sum that differs
                         .text = fmt::format("rank {} called an all_reduce of {} ({}), this rank one of {} ({}): make "
                                             "all ranks call the same sequence with equal types and sizes",
                                             rank, to_string(other.type), to_string(other.operation), to_string(type),
                                             to_string(operation))};
        }
        const std::span<std::byte> result = of_rank(0).subspan(sizeof header);
        for (std::size_t rank = 1; rank < ranks; ++rank) {
            numeric::fold(type, operation, result, of_rank(rank).subspan(sizeof header));
        }
        const std::byte* from = result.data();
        for (const Buffer& buffer : buffers) {
            const std::size_t size = buffer.elements * bytes_of(type);
            std::memcpy(buffer.out, from, size);
            from += size;
        }
        return std::nullopt;
    }
};

}  // namespace

// A call as submit_dealt() needs it.
struct Communicator::DealtCall {
    Operation operation;
    numeric::ElementType type = numeric::ElementType::int32;
    std::vector<tensor::DealtTensor::Block> blocks;
    std::uint64_t elements = 0;
    std::uint32_t detail = 0;
    std::string called;
    bool gathers = false;  // each block comes from its owner
    std::function<std::optional<Error>()> last_step{};
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
    if (const auto failed = failed_proof()) {
        return tl::unexpected(endpoint::error_after_end(*failed, call.operation));
    }
    const bool is_plain = call.gathers || numeric::is_integer(call.type);
    const std::uint8_t form = is_plain ? std::uint8_t{ATP_DTYPE_INT32} : fitter_.form_of(call.type, call.elements);
    const tensor::DealtTensor::Rules rules = rules_of_deal(call.gathers, form);
    OperationCall own{.operation = call.operation,
                      .type = call.type,
                      .elements = call.elements,
                      .detail = call.detail,
                      .text = std::move(call.called),
                      .last_step = std::move(call.last_step)};
    const std::size_t blocks = call.blocks.size();
    const std::scoped_lock lock(order_);
    tensor::NumberFitter::Fitted fitted;
    if (seals()) {
        fitted = gather_sealed(own, std::move(call.blocks), rules);
    } else if (is_plain || !fits_numbers()) {
        fitted.tensor = std::make_unique<tensor::DealtTensor>(std::move(call.blocks), rules);
    } else {
        fitted = fitter_.fit_dealt(std::move(call.blocks), rules, call.type, kind_of(own));
    }
    const std::uint64_t fragment = fitted.tensor->spans().length;
    own.alignment = fragment == 0 ? fitted.tensor->size() : blocks * fragment;  // the owners begin again
    return submit_fitted(own, std::move(fitted), deadline);
}

Result<Handle> Communicator::reduce_scatter(const void* in, void* out, std::span<const std::size_t> counts,
                                            numeric::ElementType type, const Summing& summing, Time deadline) {
    constexpr Operation operation = Operation::reduce_scatter;
    if (const auto objection = objection_to(type, summing)) {
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
    const double by = numeric::is_integer(type) ? 1.0 : factor(summing);
    DealtCall call{.operation = operation,
                   .type = type,
                   .blocks = {},
                   .elements = elements,
                   .detail = detail_of_blocks(detail_of(type, summing), counts),
                   .called = fmt::format("{} of {} {} ({})", to_string(operation), text_of(counts), to_string(type),
                                         to_string(summing))};
    if (seals()) {
        const PartOfSums own{.in = in, .out = out, .first = sum_of(counts.first(rank_)), .elements = counts[rank_]};
        return sum_sealed({operation, type, elements, call.detail, std::move(call.called)}, own, summing, deadline);
    }
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
                   .called = fmt::format("{} of {} bytes", to_string(operation), text_of(bytes)),
                   .gathers = true};
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

Result<Handle> Communicator::reduce(const Buffer& buffer, numeric::ElementType type, const Summing& summing,
                                    std::uint32_t root, Time deadline) {
    constexpr Operation operation = Operation::reduce;
    if (const auto objection = objection_to(type, summing)) {
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
    const double by = numeric::is_integer(type) ? 1.0 : factor(summing);
    DealtCall call{.operation = operation,
                   .type = type,
                   .blocks = {},
                   .elements = buffer.elements,
                   .detail = mix(detail_of(type, summing) + root),
                   .called = fmt::format("{} of {} {} to root {} ({})", to_string(operation), buffer.elements,
                                         to_string(type), root, to_string(summing))};
    if (seals()) {
        const PartOfSums own{.in = buffer.in, .out = buffer.out, .elements = rank_ == root ? buffer.elements : 0};
        return sum_sealed({operation, type, buffer.elements, call.detail, std::move(call.called)}, own, summing,
                          deadline);
    }
    void* const result = root == rank_ ? buffer.out : nullptr;
    call.blocks.push_back(
        block_of(tensor::make_sum_tensor(type, buffer.in, result, buffer.elements, scale(), by), root));
    return submit_dealt(std::move(call), deadline);
}

Result<Handle> Communicator::all_reduce(std::span<const Buffer> buffers, numeric::FoldType type,
                                        numeric::FoldOperation fold, Time deadline) {
    constexpr Operation operation = Operation::all_reduce;
    if (!numeric::can_fold(type, fold)) {
        return refuse(
            operation, Reason::unsupported,
            // errors.md, calls, unsupported
            fmt::format("elements of type {} have no {}: use a type of integers", to_string(type), to_string(fold)));
    }
    const auto gathered = std::make_shared<Gathered>(Gathered{.type = type, .operation = fold});
    std::vector<std::size_t> sizes;
    for (const Buffer& buffer : buffers) {
        if (buffer.elements == 0) continue;
        if (buffer.in == nullptr || buffer.out == nullptr) {
            return refuse(operation, Reason::malformed, "a buffer is NULL, but its size is above 0");
        }
        gathered->buffers.push_back(buffer);
        sizes.push_back(buffer.elements);
    }
    const std::size_t elements = sum_of(sizes);
    if (elements == 0) return std::make_shared<Work>(operation, nullptr, net::now(), net::now());
    if (elements > longest_fold / bytes_of(type)) {
        return refuse(operation, Reason::too_large,
                      // errors.md, calls, too large
                      fmt::format("the {} of {} {} exceeds {} bytes: split it into several operations", to_string(fold),
                                  elements, to_string(type), longest_fold));
    }
    const std::uint32_t detail = detail_of_blocks(detail_of(type, fold), sizes);
    gathered->header = {.detail = detail, .type = type, .operation = fold};
    gathered->bytes_of_rank = (sizeof(FoldHeader) + elements * bytes_of(type) + 7U) / 8U * 8U;
    gathered->bytes.resize(world_ * gathered->bytes_of_rank);
    gathered->read(gathered->of_rank(rank_));
    DealtCall call{.operation = operation,
                   .blocks = {},
                   .elements = elements,
                   .detail = detail,
                   .called = fmt::format("{} of {} {} ({})", to_string(operation), list_of(sizes), to_string(type),
                                         to_string(fold)),
                   .gathers = true,
                   .last_step = [gathered, ranks = world_] { return gathered->fold_all(ranks); }};
    for (std::uint32_t owner = 0; owner < world_; ++owner) {
        std::byte* const block = gathered->of_rank(owner).data();
        const bool mine = owner == rank_;
        call.blocks.push_back(block_of(
            tensor::make_broadcast_tensor(mine ? block : nullptr, mine ? nullptr : block, gathered->bytes_of_rank),
            owner));
    }
    return submit_dealt(std::move(call), deadline);
}

}  // namespace atp::comm
