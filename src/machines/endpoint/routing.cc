// SPDX-License-Identifier: Apache-2.0
#include "endpoint/routing.h"

namespace atp::endpoint {

bool goes_up(std::span<const std::byte> datagram) {
    if (datagram.size() < ATP_HEADER_BYTES || wire::load_u8(datagram.data()) != ATP_VERSION) return false;
    return wire::goes_up(wire::load_u8(datagram.data() + ATP_OFFSET_TYPE));
}

Downward downward_of(std::span<const std::byte> packet) {
    Downward down{.type = wire::load_u8(packet.data() + ATP_OFFSET_TYPE),
                  .worker = wire::load_u16(packet.data() + ATP_OFFSET_WORKER),
                  .units = wire::load_u32(packet.data() + ATP_OFFSET_BITMAP1),
                  .members = 0};
    const bool is_request = down.type == ATP_TYPE_NACK || down.type == ATP_TYPE_FLUSH;
    if (is_request) down.members = wire::load_u32(packet.data() + ATP_OFFSET_BITMAP0);
    return down;
}

}  // namespace atp::endpoint
