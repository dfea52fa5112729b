// SPDX-License-Identifier: Apache-2.0
#include "emulation/delayed_packets.h"

#include <algorithm>
#include <cstring>

namespace atp::emulation {
namespace {

std::size_t whole_cache_lines(std::size_t bytes) {
    return (bytes + net::cache_line_bytes - 1) / net::cache_line_bytes * net::cache_line_bytes;
}

}  // namespace

DelayedPackets::DelayedPackets(std::uint32_t packets, std::uint32_t max_packet_bytes)
    : packet_limit_(packets),
      max_packet_bytes_(max_packet_bytes),
      stride_bytes_(whole_cache_lines(max_packet_bytes)),
      arena_(net::allocate_aligned((std::size_t{packets} + 1) * stride_bytes_)),
      slots_(std::size_t{packets} + 1) {
    free_.reserve(slots_.size());
    for (std::size_t slot = slots_.size(); slot != 0; --slot) free_.push_back(static_cast<std::uint32_t>(slot - 1));
    waiting_.reserve(packets);
}

bool DelayedPackets::hold(std::span<const std::byte> bytes, const wire::Address& peer, wire::Ecn ecn,
                          DelayedFor purpose, Time departs) {
    if (full() || bytes.size() > max_packet_bytes_) return false;
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    slots_[slot] = {peer, static_cast<std::uint32_t>(bytes.size()), ecn, purpose};
    if (!bytes.empty()) std::memcpy(bytes_of(slot), bytes.data(), bytes.size());
    waiting_.push_back({departs, order_++, slot});
    std::push_heap(waiting_.begin(), waiting_.end(), departs_later);
    return true;
}

std::optional<DelayedPacket> DelayedPackets::pop_due(Time now) {
    if (popped_ != none) {
        free_.push_back(popped_);
        popped_ = none;
    }
    if (waiting_.empty() || waiting_.front().departs > now) return std::nullopt;
    std::pop_heap(waiting_.begin(), waiting_.end(), departs_later);
    const Waiting due = waiting_.back();
    waiting_.pop_back();
    popped_ = due.slot;
    const Slot& slot = slots_[due.slot];
    return DelayedPacket{.bytes = {bytes_of(due.slot), slot.bytes},
                         .capacity = max_packet_bytes_,
                         .peer = slot.peer,
                         .ecn = slot.ecn,
                         .purpose = slot.purpose,
                         .departs = due.departs};
}

Time DelayedPackets::next_departure() const { return waiting_.empty() ? never : waiting_.front().departs; }

bool DelayedPackets::departs_later(const Waiting& a, const Waiting& b) {
    return a.departs != b.departs ? a.departs > b.departs : a.order > b.order;
}

}  // namespace atp::emulation
