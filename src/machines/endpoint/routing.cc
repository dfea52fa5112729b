// SPDX-License-Identifier: Apache-2.0
#include "endpoint/routing.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {

bool goes_up(std::span<const std::byte> datagram) {
    if (datagram.size() < ATP_HEADER_BYTES || wire::load_u8(datagram.data()) != ATP_VERSION) return false;
    const std::uint8_t type = wire::load_u8(datagram.data() + ATP_OFFSET_TYPE);
    return wire::goes_up(type) || (type == ATP_TYPE_ACK && ATP_ROUTING_BREAK(result_goes_up));
}

std::uint16_t only_sender_of(std::span<const std::byte> packet) {
    const bool is_ack = wire::load_u8(packet.data() + ATP_OFFSET_TYPE) == ATP_TYPE_ACK;
    const std::uint16_t flags = wire::load_u16(packet.data() + ATP_OFFSET_FLAGS);
    if (!is_ack || (flags & ATP_FLAG_ONE_SENDER) == 0) return ATP_WORKER_ALL;
    return wire::load_u16(packet.data() + ATP_OFFSET_PEER);
}

bool may_be_copied(std::span<const std::byte> packet) {
    if (packet.size() <= ATP_HEADER_BYTES || only_sender_of(packet) != ATP_WORKER_ALL) return false;
    atp_header header{};
    header.lanes = wire::load_u8(packet.data() + ATP_OFFSET_LANES);
    const std::uint8_t form = atp_lanes_form(&header);
    return form == ATP_DTYPE_INT32 || form == atp_lanes_type(&header);
}

Downward downward_of(std::span<const std::byte> packet) {
    Downward down{.type = wire::load_u8(packet.data() + ATP_OFFSET_TYPE),
                  .worker = wire::load_u16(packet.data() + ATP_OFFSET_WORKER),
                  .units = wire::load_u32(packet.data() + ATP_OFFSET_BITMAP1),
                  .members = 0};
    const bool is_request = down.type == ATP_TYPE_NACK || down.type == ATP_TYPE_FLUSH;
    if (is_request) down.members = wire::load_u32(packet.data() + ATP_OFFSET_BITMAP0);
    down.except = only_sender_of(packet);
    return down;
}

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
