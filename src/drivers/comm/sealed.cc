// SPDX-License-Identifier: Apache-2.0
// Operations of which the ranks prove that no switch changed their sums. docs/spec/sealing.md is normative.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/communicator.h"
#include "tensor/sealed_tensor.h"
#include "tensor/tensors.h"
#include "wire/packet.h"

namespace atp::comm {
namespace {

using SealFinding = tensor::OperationSeal::SealFinding;

// What the word of each rank is bound to.
std::array<std::byte, 16> call_of(Operation operation, std::uint32_t detail, std::uint64_t elements) {
    std::array<std::byte, 16> call{};
    wire::store_u32(call.data(), static_cast<std::uint32_t>(operation));
    wire::store_u32(call.data() + 4, detail);
    wire::store_u64(call.data() + 8, elements);
    return call;
}

}  // namespace

// One host has no switch that could lie.
void Communicator::prepare_seal(const store::Rendezvous& rendezvous, const Meeting& meeting) {
    const auto factors = rendezvous.key("factors");
    const auto words = rendezvous.key("words");
    if (options_.seal == Seal::none || !factors || !words) return;
    seal_keys_ = tensor::SealKeys{.factors = *factors, .words = *words};
    for (const wire::RankFacts& facts : meeting.facts) switches_.push_back(facts.switch_address);
    std::ranges::sort(switches_);
    const auto repeated = std::ranges::unique(switches_);
    switches_.erase(repeated.begin(), repeated.end());
    std::erase(switches_, std::string());
}

std::shared_ptr<tensor::OperationSeal> Communicator::seal_of(const OperationCall& call) const {
    return std::make_shared<tensor::OperationSeal>(
        tensor::OperationSeal::Rules{.operation = calls_ + 1,
                                     .rank = rank_,
                                     .ranks = world_,
                                     .call = call_of(call.operation, call.detail, call.elements),
                                     .keys = *seal_keys_,
                                     .feed = feed_});
}

tensor::NumberFitter::Fitted Communicator::fit_sealed(OperationCall& call, std::unique_ptr<protocol::Tensor> tensor) {
    const bool is_sum = call.operation != Operation::broadcast && call.operation != Operation::barrier;
    const bool may_wrap = is_sum && call.type == numeric::ElementType::int32;
    const tensor::SealedWords words{.kind = is_sum ? crypto::WordKind::balanced : crypto::WordKind::natural,
                                    .may_wrap = may_wrap};
    const auto seal = seal_of(call);
    auto fitted = fitter_.fit_sealed(std::move(tensor), words, seal);
    prove(call, fitted, seal);
    return fitted;
}

tensor::NumberFitter::Fitted Communicator::gather_sealed(OperationCall& call,
                                                         std::vector<tensor::DealtTensor::Block> blocks,
                                                         const tensor::DealtTensor::Rules& rules) {
    const auto seal = seal_of(call);
    tensor::SealedBlock* own = nullptr;
    for (tensor::DealtTensor::Block& block : blocks) {
        auto sealed = std::make_unique<tensor::SealedBlock>(std::move(block.tensor), seal);
        if (block.owner == rank_) own = sealed.get();
        block.tensor = std::move(sealed);
    }
    own->note_own();
    tensor::NumberFitter::Fitted fitted{.tensor = std::make_unique<tensor::DealtTensor>(std::move(blocks), rules)};
    prove(call, fitted, seal);
    return fitted;
}

// No rank can prove a sum that only another one got. So all ranks get all sums, of which each keeps its part once they
// are proven. The tensor goes up as often as without a seal, and its sums come down on links that are as fast.
Result<Handle> Communicator::sum_sealed(OperationCall call, const PartOfSums& part, const Summing& summing,
                                        Time deadline) {
    const std::size_t unit = numeric::bytes_of(call.type);
    const auto sums = std::make_shared<std::vector<std::byte>>(call.elements * unit);
    call.alignment = alignment_of(call.type);
    call.last_step = [sums, part, unit]() -> std::optional<Error> {
        if (part.elements != 0) std::memcpy(part.out, sums->data() + part.first * unit, part.elements * unit);
        return std::nullopt;
    };
    const double by = numeric::is_integer(call.type) ? 1.0 : factor(summing);
    auto tensor = tensor::make_sum_tensor(call.type, part.in, sums->data(), call.elements, scale(), by);
    return submit(std::move(call), std::move(tensor), deadline);
}

// The words of all ranks follow the tensor. Its results count only once they are proven, and so does the last step that
// the call had.
void Communicator::prove(OperationCall& call, tensor::NumberFitter::Fitted& fitted,
                         const std::shared_ptr<tensor::OperationSeal>& seal) {
    std::vector<tensor::DealtTensor::Block> blocks;
    for (std::uint32_t rank = 0; rank < world_; ++rank) {
        blocks.push_back(block_of(std::make_unique<tensor::SealWordTensor>(seal, rank), rank));
    }
    fitted.after =
        std::make_unique<tensor::DealtTensor>(std::move(blocks), rules_of_deal(true, std::uint8_t{ATP_DTYPE_INT32}));
    call.last_step = [this, seal, sealed = fitted.sealed, operation = call.operation,
                      called = fmt::format("{} as call {}", call.text, calls_ + 1),
                      then = std::move(call.last_step)]() -> std::optional<Error> {
        const SealFinding proof = seal->check();
        if (auto error = error_of_seal(proof, operation, called)) {
            note_failed_proof(*error);
            return error;
        }
        if (sealed != nullptr) sealed->store_extremes();
        return then ? then() : std::nullopt;
    };
}

void Communicator::note_failed_proof(const Error& error) {
    log_reason(observe::LogEvent::job_failed, to_string(error));
    const std::scoped_lock lock(failed_proof_mutex_);
    if (!failed_proof_) failed_proof_ = error;
}

std::optional<Error> Communicator::failed_proof() const {
    const std::scoped_lock lock(failed_proof_mutex_);
    return failed_proof_;
}

// The other ranks may still lack a word that proves to them what this rank knows, so its channels serve them.
void Communicator::end_after(const Error& error) {
    if (!failed_proof()) end_channels(error);
}

std::optional<Error> Communicator::error_of_seal(SealFinding proof, Operation operation,
                                                 const std::string& called) const {
    Error error{.operation = operation, .reason = Reason::unsupported};
    switch (proof) {
        case SealFinding::holds: return std::nullopt;
        case SealFinding::wraps:
            // errors.md, runs, unsupported: modulo 2^32, a sum proves nothing
            error.text = fmt::format("cannot seal the {}: sums of int32 may leave 32 bits: use int64", called);
            return error;
        case SealFinding::misfits:
            // errors.md, runs, unsupported: of the numbers that a fixed scale has, switches add no others
            error.text = fmt::format(
                "cannot seal the {}: a number has no integer at the fixed scale: use dynamic scaling", called);
            return error;
        case SealFinding::demands:
        case SealFinding::lied: break;
    }
    error.reason = Reason::forged;
    const std::string above = formation_.levels < 2 ? "" : ", or one above,";
    const bool one = switches_.size() == 1 && above.empty();
    if (one) error.peer = error.address = switches_.front();
    const std::string blamed =
        one ? "this switch" : fmt::format("one of the switches {}{}", fmt::join(switches_, ", "), above);
    if (proof == SealFinding::demands) {
        // errors.md, runs, forged: the sum is right, but a proof of floats is none
        error.text = fmt::format("in the {}, {} asked for floats or claimed an overflow, or a rank with the key did",
                                 called, blamed);
        return error;
    }
    // errors.md, runs, forged: [sealed sums](../operate/secure.md#sealed-sums)
    error.text = fmt::format(
        "the {} did not get the sum of what the ranks sent: {} changed it, or a rank with the key did", called, blamed);
    return error;
}

}  // namespace atp::comm
