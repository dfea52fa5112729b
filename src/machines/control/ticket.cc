// SPDX-License-Identifier: Apache-2.0
#include "control/ticket.h"

#include <algorithm>
#include <cstdint>

#include "wire/bytes.h"

namespace atp::control {

Ticket ticket_of(const Secret& key, const ChannelKey& channel) {
    Ticket ticket{};
    std::array<std::byte, 1 + 4 + 8 + 2> message{};
    wire::store_u32(message.data() + 1, channel.job);
    wire::store_u64(message.data() + 5, channel.token);
    wire::store_u16(message.data() + 13, channel.channel);
    for (std::uint8_t half = 0; half < 2; ++half) {
        wire::store_u8(message.data(), half);
        wire::store_u64(ticket.data() + half * sizeof(std::uint64_t),
                        std::max<std::uint64_t>(siphash(key, message), 1));
    }
    return ticket;
}

}  // namespace atp::control
