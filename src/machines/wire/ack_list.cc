// SPDX-License-Identifier: Apache-2.0
#include "wire/ack_list.h"

#include <cassert>
#include <cstring>

namespace atp::wire {
namespace {

// Fields of a further ACK. `index` is left out: a list needs no aggregator.
enum Offset : std::size_t { at_seq = 0, at_argument = 4, at_flags = 8, at_peer = 10, at_scale = 12, at_sending = 13 };

}  // namespace

void AckList::add(std::span<const std::byte> ack) {
    assert(ack.size() == ATP_HEADER_BYTES && size_ < max_listed_acks);
    if (size_++ == 0) {
        std::memcpy(bytes_.data(), ack.data(), ATP_HEADER_BYTES);
        return;
    }
    store_u8(bytes_.data() + ATP_OFFSET_TYPE, ATP_TYPE_ACK_LIST);
    const atp_header header = detail::load_header(ack.data());
    std::byte* const words = bytes_.data() + ack_list_bytes(size_ - 1);
    std::memset(words, 0, listed_ack_bytes);
    store_u32(words + at_seq, header.seq);
    store_u32(words + at_argument, header.argument);
    store_u16(words + at_flags, header.flags);
    store_u16(words + at_peer, header.peer);
    store_u8(words + at_scale, header.scale);
    store_u8(words + at_sending, header.sending);
}

atp_header listed_ack(const Packet& list, std::size_t at) {
    atp_header ack = list.header;
    ack.type = ATP_TYPE_ACK;
    if (at == 0) return ack;
    const std::byte* const words = list.lanes.data() + (at - 1) * listed_ack_bytes;
    ack.index = 0;
    ack.seq = load_u32(words + at_seq);
    ack.argument = load_u32(words + at_argument);
    ack.flags = load_u16(words + at_flags);
    ack.peer = load_u16(words + at_peer);
    ack.scale = load_u8(words + at_scale);
    ack.sending = load_u8(words + at_sending);
    return ack;
}

}  // namespace atp::wire
