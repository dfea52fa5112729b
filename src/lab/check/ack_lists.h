// SPDX-License-Identifier: Apache-2.0
// Lists of ACKs without lanes (docs/spec/packet.md#ack-lists), read by code of the checker's own.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "check/state_archive.h"
#include "wire/format.h"

namespace atp::check {

// True for an ACK without lanes, and for a list.
[[nodiscard]] bool is_empty_ack(std::span<const std::byte> packet);
// The ACKs of such a packet, as packets that arrive alone.
[[nodiscard]] std::vector<Bytes> acks_of(std::span<const std::byte> packet);

// The ACKs without lanes that a switch has taken and not sent yet. Each must leave once, unchanged, and to its own
// receiver.
class OwedAcks {
  public:
    void take(std::span<const std::byte> ack);
    // A packet leaves. Returns a violation, or an empty text.
    [[nodiscard]] std::string_view leave(std::span<const std::byte> packet);
    [[nodiscard]] bool empty() const { return owed_.empty(); }

    template <class Archive>
    void persist(Archive& archive) {
        std::uint64_t size = owed_.size();
        archive.value(size);
        owed_.resize(size, Bytes(ATP_HEADER_BYTES));
        for (Bytes& ack : owed_) archive.bytes(ack);
    }

  private:
    std::vector<Bytes> owed_;  // without their index, which a list omits
};

}  // namespace atp::check
