// SPDX-License-Identifier: Apache-2.0
#include "tensor/operation_seal.h"

#include <algorithm>
#include <utility>

#include "wire/packet.h"

namespace atp::tensor {
namespace {

constexpr unsigned bits_of_extreme = 2;
constexpr std::uint32_t misfit_bit = 1;
constexpr std::uint32_t demand_bit = 2;

std::uint32_t largest_of(std::span<const std::byte> words) {
    std::uint32_t largest = 0;
    for (std::size_t at = 0; at < words.size(); at += ATP_LANE_BYTES) {
        const std::uint32_t word = wire::load_u32(words.data() + at);
        largest = std::max(largest, word >> 31U == 0 ? word : ~word + 1);
    }
    return largest;
}

}  // namespace

void SealWord::encode(std::span<std::byte, plain_bytes> bytes) const {
    std::ranges::fill(bytes, std::byte{0});
    std::byte* at = bytes.data();
    wire::store_u64(at, sent);
    wire::store_u64(at + 8, got);
    wire::store_u32(at + 16, largest);
    wire::store_u32(at + 20, (misfits ? misfit_bit : 0U) | (demands ? demand_bit : 0U));
    wire::store_u32(at + 24, static_cast<std::uint32_t>(runs.size()));
    at += 32;
    for (const ExtremeRun& run : runs) {
        wire::store_u64(at, run.first);
        wire::store_u64(at + 8, run.count << bits_of_extreme | static_cast<std::uint64_t>(run.value));
        at += 16;
    }
}

SealWord SealWord::decode(std::span<const std::byte, plain_bytes> bytes) {
    const std::byte* at = bytes.data();
    SealWord word{.sent = wire::load_u64(at),
                  .got = wire::load_u64(at + 8),
                  .largest = wire::load_u32(at + 16),
                  .misfits = (wire::load_u32(at + 20) & misfit_bit) != 0,
                  .demands = (wire::load_u32(at + 20) & demand_bit) != 0};
    const std::size_t count = std::min<std::size_t>(wire::load_u32(at + 24), most_runs);
    at += 32;
    for (std::size_t number = 0; number < count; ++number, at += 16) {
        const std::uint64_t packed = wire::load_u64(at + 8);
        word.runs.push_back({.first = wire::load_u64(at),
                             .count = packed >> bits_of_extreme,
                             .value = static_cast<Extreme>(packed & ((1U << bits_of_extreme) - 1))});
    }
    return word;
}

OperationSeal::OperationSeal(Rules rules)
    : rules_(std::move(rules)), code_(rules_.keys.factors, rules_.operation), words_of_ranks_(rules_.ranks) {}

std::uint64_t OperationSeal::expect(std::uint64_t words) {
    words_left_.fetch_add(words, std::memory_order_relaxed);
    return std::exchange(words_, words_ + words);
}

void OperationSeal::note(const SealedPart& part) {
    const std::size_t count = part.got.size() / ATP_LANE_BYTES;
    crypto::LinearCode::Factors factors;
    code_.read(part.first, count, factors);
    const std::uint64_t sent = crypto::LinearCode::code(factors, part.sent, part.words.kind);
    const std::uint64_t got = crypto::LinearCode::code(factors, part.got, part.words.kind);
    const std::uint32_t largest = part.words.may_wrap ? largest_of(part.sent) : 0;
    {
        const std::scoped_lock lock(mutex_);
        own_.sent = crypto::code_sum(own_.sent, sent);
        own_.got = crypto::code_sum(own_.got, got);
        own_.largest = std::max(own_.largest, largest);
    }
    if (words_left_.fetch_sub(count, std::memory_order_acq_rel) == count) rules_.feed->advance();
}

// Neighbours become one run. If there are too many runs in the end, one covers all.
void OperationSeal::note(const ExtremeRun& run) {
    const std::scoped_lock lock(mutex_);
    if (!own_.runs.empty()) {
        ExtremeRun& last = own_.runs.back();
        if (last.value == run.value && last.first + last.count == run.first) {
            last.count += run.count;
            return;
        }
    }
    if (own_.runs.size() < SealWord::most_runs) return own_.runs.push_back(run);
    ExtremeRun all = run;
    all.value = Extreme::nan;
    for (const ExtremeRun& one : own_.runs) {
        const std::uint64_t end = std::max(all.first + all.count, one.first + one.count);
        all.first = std::min(all.first, one.first);
        all.count = end - all.first;
    }
    own_.runs.assign(1, all);
}

void OperationSeal::note_misfit() {
    const std::scoped_lock lock(mutex_);
    own_.misfits = true;
}

void OperationSeal::note_demand() {
    const std::scoped_lock lock(mutex_);
    own_.demands = true;
}

crypto::Nonce OperationSeal::nonce_of(std::uint32_t rank) const {
    crypto::Nonce nonce{};
    wire::store_u64(nonce.data(), rules_.operation);
    wire::store_u32(nonce.data() + 8, rank);
    return nonce;
}

// Sealed once: every copy of it has the same bytes.
std::span<const std::byte> OperationSeal::own_word() {
    const std::scoped_lock lock(mutex_);
    Sealed& sealed = words_of_ranks_[rules_.rank];
    if (!std::exchange(sealed_, true)) {
        std::array<std::byte, SealWord::plain_bytes> plain{};
        own_.encode(plain);
        crypto::seal(rules_.keys.words, nonce_of(rules_.rank), rules_.call, plain, sealed);
    }
    return sealed;
}

void OperationSeal::keep(std::uint32_t rank, std::size_t offset, std::span<const std::byte> bytes) {
    const std::scoped_lock lock(mutex_);
    const std::span place = std::span(words_of_ranks_[rank]).subspan(offset);
    std::ranges::copy(bytes.first(std::min(bytes.size(), place.size())), place.begin());
}

std::optional<SealWord> OperationSeal::opened(std::uint32_t rank) const {
    if (rank == rules_.rank) return own_;
    std::array<std::byte, SealWord::plain_bytes> plain{};
    if (!crypto::open(rules_.keys.words, nonce_of(rank), rules_.call, words_of_ranks_[rank], plain))
        return std::nullopt;
    return SealWord::decode(plain);
}

// A rank that lacks an integer says so under the key, so no switch can make a lie look like that.
OperationSeal::SealFinding OperationSeal::check() {
    const std::scoped_lock lock(mutex_);
    std::vector<SealWord> words;
    std::uint64_t sent = 0;
    std::uint64_t largest = 0;
    for (std::uint32_t rank = 0; rank < rules_.ranks; ++rank) {
        auto word = opened(rank);
        if (!word) return SealFinding::lied;
        sent = crypto::code_sum(sent, word->sent % crypto::code_prime);
        largest += word->largest;
        words.push_back(*std::move(word));
    }
    if (largest > std::uint64_t{std::numeric_limits<std::int32_t>::max()}) return SealFinding::wraps;
    const auto holds = [&](const SealWord& word) { return word.got % crypto::code_prime == sent; };
    if (!std::ranges::all_of(words, holds)) return SealFinding::lied;
    if (std::ranges::any_of(words, &SealWord::demands)) return SealFinding::demands;
    if (std::ranges::any_of(words, &SealWord::misfits)) return SealFinding::misfits;
    for (const SealWord& word : words) extremes_.insert(extremes_.end(), word.runs.begin(), word.runs.end());
    return SealFinding::holds;
}

}  // namespace atp::tensor
