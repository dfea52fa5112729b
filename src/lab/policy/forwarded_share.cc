// SPDX-License-Identifier: Apache-2.0
#include "policy/forwarded_share.h"

#include "base/hash.h"
#include "random/random.h"
#include "wire/bytes.h"
#include "wire/format.h"

namespace atp::policy {

// With the next hop, the packets look as if the first switch had passed them, and the server fetches nothing from it.
void ForwardedShare::mark(std::span<std::byte> packet) const {
    if (packet.size() < ATP_HEADER_BYTES || wire::load_u8(packet.data()) != ATP_VERSION) return;
    std::byte* const bytes = packet.data();
    if (wire::load_u8(bytes + ATP_OFFSET_TYPE) != ATP_TYPE_GRADIENT) return;
    const std::uint64_t channel = wire::load_u16(bytes + ATP_OFFSET_CHANNEL);
    const std::uint64_t fragment = channel << 32U | wire::load_u32(bytes + ATP_OFFSET_SEQ);
    const std::uint32_t job = wire::load_u32(bytes + ATP_OFFSET_JOB);
    if (share_of_one(mix64(mix64(seed_, job), fragment)) >= share_) return;
    const std::uint16_t flags = wire::load_u16(bytes + ATP_OFFSET_FLAGS);
    wire::store_u16(bytes + ATP_OFFSET_FLAGS, static_cast<std::uint16_t>(flags | ATP_FLAG_BYPASS));
    wire::store_u8(bytes + ATP_OFFSET_HOP, static_cast<std::uint8_t>(wire::load_u8(bytes + ATP_OFFSET_HOP) + 1));
}

}  // namespace atp::policy
