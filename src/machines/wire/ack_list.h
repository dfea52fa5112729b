// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/packet.h"

namespace atp::wire {

inline constexpr std::size_t listed_ack_bytes = std::size_t{ATP_LISTED_ACK_LANES} * ATP_LANE_BYTES;
inline constexpr std::size_t max_listed_acks = 1 + ATP_MAX_ACK_LIST_LANES / ATP_LISTED_ACK_LANES;

// Bytes of a list of `acks` ACKs, at least one.
[[nodiscard]] constexpr std::size_t ack_list_bytes(std::size_t acks) {
    return ATP_HEADER_BYTES + (acks - 1) * listed_ack_bytes;
}

// ACKs without lanes that leave in one packet: one is an ACK, several are an ACK_LIST (docs/spec/packet.md#ack-lists).
//
// Ownership: owns the bytes of the packet.
// Calling order: add() for ACKs of one channel to one receiver; then packet(), and clear() for another use.
// Threads: none. Failure: none.
class AckList {
  public:
    // Requires an encoded ACK without lanes, and fewer than max_listed_acks.
    void add(std::span<const std::byte> ack);
    void clear() { size_ = 0; }

    [[nodiscard]] std::size_t size() const { return size_; }
    // Requires at least one ACK. Valid until the next add().
    [[nodiscard]] std::span<const std::byte> packet() const { return std::span(bytes_).first(ack_list_bytes(size_)); }

    template <class Archive>
    void persist(Archive& archive) {
        std::uint64_t size = size_;
        archive.value(size);
        size_ = std::min<std::size_t>(size, max_listed_acks);  // an archive may contain any number
        if (size_ != 0) archive.bytes(std::span(bytes_).first(ack_list_bytes(size_)));
    }

  private:
    std::array<std::byte, ack_list_bytes(max_listed_acks)> bytes_{};
    std::size_t size_ = 0;
};

// The ACKs of a decoded ACK_LIST: their number, and the header of one of them. Only those fields are checked that all
// have in common.
[[nodiscard]] inline std::size_t listed_acks(const Packet& list) { return 1 + list.lanes.size() / listed_ack_bytes; }
[[nodiscard]] atp_header listed_ack(const Packet& list, std::size_t at);

}  // namespace atp::wire
