// SPDX-License-Identifier: Apache-2.0
#include "host/packet_list.h"

namespace atp::host {

std::span<std::byte> PacketList::reserve(std::size_t max_bytes) {
    room_.assign(max_bytes, std::byte{});
    return room_;
}

void PacketList::commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) {
    room_.resize(bytes);
    packets_.push_back({std::move(room_), to, ecn});
}

bool PacketList::borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) {
    packets_.push_back({{bytes.begin(), bytes.end()}, to, ecn});
    return true;
}

bool PacketList::repeat(const wire::Address& to) {
    if (packets_.empty()) return false;
    packets_.push_back({packets_.back().bytes, to, packets_.back().ecn});
    return true;
}

}  // namespace atp::host
