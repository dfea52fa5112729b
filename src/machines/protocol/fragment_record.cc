// SPDX-License-Identifier: Apache-2.0
#include "protocol/fragment_record.h"

#include <new>

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
    : lanes_(channel.lanes),
      audit_lanes_(channel.audit ? 1U : 0U),
      units_(units),
      records_(2U * channel.window()),
      in_(records_.size() * units),
      sent_(in_.size()),
      notified_(in_.size()),
      sums_(claim_pages<std::int64_t>(records_.size() * lanes_)),
      exact_(claim_pages<numeric::ExactLane>(records_.size() * lanes_)),
      results_(claim_pages<std::byte>(records_.size() * lanes_ * ATP_LANE_BYTES)),
      ranks_in_(claim_pages<std::uint64_t>(in_.size() * ATP_BITMAP_BITS)) {}

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
