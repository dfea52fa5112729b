// SPDX-License-Identifier: Apache-2.0
#include "protocol/fragment_record.h"

#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "wire/bytes.h"

namespace atp::protocol {
namespace {

// An element of a result has four bytes.
constexpr std::size_t result_bytes = ATP_LANE_BYTES;

}  // namespace

FragmentRecords::FragmentRecords(const ChannelConfig& channel, unsigned units, MemoryBudget* budget)
    : payload_(channel.payload_lanes()),
      elements_(payload_ * atp_elements_per_word(ATP_DTYPE_INT8)),
      audit_lanes_(channel.audit ? 1U : 0U),
      units_(units),
      places_(std::size_t{2} * channel.window()),
      budget_(budget),
      used_(places_),
      records_(claim_pages<FragmentRecord>(places_)),
      in_(claim_pages<std::uint32_t>(places_ * units)),
      sent_(claim_pages<std::uint32_t>(places_ * units)),
      notified_(claim_pages<std::uint32_t>(places_ * units)),
      results_(claim_pages<std::byte>(places_ * elements_ * result_bytes)),
      sums_(places_) {
    spare_.reserve(fragments_with_room(channel.window()));
}

FragmentRecords::~FragmentRecords() {
    if (budget_ != nullptr) budget_->shrink(grown_);
}

std::uint64_t FragmentRecords::reserved_bytes(std::uint32_t lanes, std::uint32_t window, unsigned units) {
    // A record, its place, its answers that wait, and the slot's index.
    constexpr std::uint64_t state_bytes = 320;
    const std::uint64_t elements = std::uint64_t{lanes} * atp_elements_per_word(ATP_DTYPE_INT8);
    const std::uint64_t kept = elements * result_bytes + units * 3 * sizeof(std::uint32_t) + state_bytes;
    const std::uint64_t floats = elements * (sizeof(std::int64_t) + sizeof(numeric::ExactLane)) +
                                 std::uint64_t{units} * ATP_BITMAP_BITS * sizeof(FloatsIn);
    const std::uint64_t spare = elements * sizeof(std::int64_t);
    return std::uint64_t{2} * window * kept + fragments_with_room(window) * (floats + spare + 2 * sizeof(HeldSums));
}

std::size_t FragmentRecords::bytes_of_sums(std::size_t elements, bool floats) const {
    const std::size_t integers = sizeof(HeldSums) + elements * sizeof(std::int64_t);
    if (!floats) return integers;
    return integers + elements * sizeof(numeric::ExactLane) + units_ * ATP_BITMAP_BITS * sizeof(FloatsIn);
}

FragmentRecords::Held FragmentRecords::spare_with(std::size_t elements) {
    if (spare_.empty()) return nullptr;
    Held found = std::move(spare_.back());
    spare_.pop_back();
    return found->capacity >= elements ? std::move(found) : nullptr;
}

bool FragmentRecords::hold(const FragmentRecord& record, std::size_t elements, bool floats, bool first) {
    const std::size_t bytes = bytes_of_sums(elements, floats);
    const bool grows = budget_ != nullptr && !first;
    if (grows && !budget_->grow(bytes, grown_)) return false;
    Held found = floats ? nullptr : spare_with(elements);
    if (found == nullptr) {
        void* const memory = std::malloc(bytes);
        if (memory == nullptr) {
            if (grows) budget_->shrink(bytes);
            return false;
        }
        found.reset(new (memory) HeldSums{.capacity = elements, .floats = floats});
    }
    found->elements = elements;
    found->grown = grows ? bytes : 0;
    grown_ += found->grown;
    release(std::exchange(sums_[position(record)], std::move(found)));
    return true;
}

void FragmentRecords::release(Held sums) {
    if (sums == nullptr) return;
    grown_ -= sums->grown;
    if (budget_ != nullptr) budget_->shrink(sums->grown);
    if (!sums->floats && spare_.size() < spare_.capacity()) spare_.push_back(std::move(sums));
}

bool FragmentRecords::hold_sums(const FragmentRecord& record, std::size_t elements, bool first) {
    const Held& held = sums_[position(record)];
    if (held == nullptr || held->capacity < elements) return hold(record, elements, false, first);
    held->elements = elements;
    return true;
}

bool FragmentRecords::hold_floats(const FragmentRecord& record, std::size_t elements, bool first) {
    if (!hold(record, elements, true, first)) return false;
    HeldSums& held = *sums_[position(record)];
    std::fill_n(held.integers(), elements, 0);
    std::fill_n(held.exact(), elements, numeric::ExactLane{});
    std::fill_n(held.floats_in(), units_ * ATP_BITMAP_BITS, FloatsIn{});
    return true;
}

void FragmentRecords::drop_sums(const FragmentRecord& record) { drop_sums_at(position(record)); }

void FragmentRecords::drop_sums_at(std::size_t place) { release(std::exchange(sums_[place], nullptr)); }

// The last packet belongs to the highest rank, so each packet up to it must have come from the same ranks.
bool FloatsIn::complete() const {
    const auto last = std::ranges::find_if(ranks, [](std::uint64_t bits) { return (bits & 1U) != 0; });
    if (last == ranks.end()) return false;
    const std::uint64_t all = *last >> 1U;
    return std::has_single_bit(all + 1) &&
           std::all_of(ranks.begin(), last, [&](std::uint64_t bits) { return bits >> 1U == all; });
}

std::size_t FragmentRecords::copy_result(const FragmentRecord& record, unsigned packet, std::span<std::byte> buffer) {
    const std::size_t first = packet * payload_;
    const std::size_t words = std::min(result_words(record) - first, payload_);
    std::ranges::copy(result(record).subspan(first * ATP_LANE_BYTES, words * ATP_LANE_BYTES), buffer.begin());
    const std::size_t tail = tail_lanes(record.proves_result());
    for (std::size_t at = 0; at < tail; ++at) {
        const std::uint32_t word = record.proves_result() ? record.proof_words[at] : record.audit_lane;
        wire::store_u32(buffer.data() + (words + at) * ATP_LANE_BYTES, word);
    }
    return (words + tail) * ATP_LANE_BYTES;
}

FragmentRecord& FragmentRecords::open(std::uint32_t seq, std::uint32_t index) {
    const std::size_t place = seq % places_;
    used_[place] = 1;
    drop_sums_at(place);
    FragmentRecord& record = records_[place];
    record = FragmentRecord{};
    record.seq = seq;
    record.state = FragmentRecord::State::gathering;
    record.index = index;
    std::ranges::fill(included(record), 0U);
    std::ranges::fill(sent(record), 0U);
    std::ranges::fill(notified(record), 0U);
    return record;
}

std::uint32_t FragmentRecords::not_yet_notified(FragmentRecord& record, unsigned unit, std::uint32_t members, Time now,
                                                Duration interval) {
    if (now >= record.notified_until) {
        std::ranges::fill(notified(record), 0U);
        record.notified_until = now + interval;
    }
    std::uint32_t& answered = notified(record)[unit];
    const std::uint32_t fresh = members & ~answered;
    answered |= fresh;
    return fresh;
}

}  // namespace atp::protocol
