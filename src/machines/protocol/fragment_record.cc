// SPDX-License-Identifier: Apache-2.0
#include "protocol/fragment_record.h"

#include <bit>
#include <new>

#include "wire/bytes.h"

namespace atp::protocol {
namespace {

// calloc() defers zeroing to the first access. Otherwise, clients that open and close servers would keep a switch busy
// with clearing memory.
template <class Element>
Element* claim_pages(std::size_t count) {
    void* memory = std::calloc(std::max<std::size_t>(count, 1), sizeof(Element));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<Element*>(memory);
}

}  // namespace

FragmentRecords::FragmentRecords(const ChannelConfig& channel, unsigned units)
    : payload_(channel.payload_lanes()),
      elements_(payload_ * atp_elements_per_word(ATP_DTYPE_INT8)),
      audit_lanes_(channel.audit ? 1U : 0U),
      units_(units),
      records_(2U * channel.window()),
      in_(records_.size() * units),
      sent_(in_.size()),
      notified_(in_.size()),
      sums_(claim_pages<std::int64_t>(records_.size() * elements_)),
      exact_(claim_pages<numeric::ExactLane>(records_.size() * elements_)),
      results_(claim_pages<std::byte>(records_.size() * elements_ * ATP_LANE_BYTES)),
      floats_in_(claim_pages<FloatsIn>(in_.size() * ATP_BITMAP_BITS)) {}

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
    FragmentRecord& record = at(seq);
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
