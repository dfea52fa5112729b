// SPDX-License-Identifier: Apache-2.0
#include "policy/blind_resends.h"

#include "wire/packet.h"

namespace atp::policy {

bool turn_probe_into_nack(std::span<std::byte> packet) {
    wire::Packet probe;
    if (wire::decode(packet, probe) != wire::DecodeError::none || probe.header.type != ATP_TYPE_PROBE) return false;
    if ((probe.header.flags & ATP_FLAG_ONE_SENDER) != 0) return false;
    atp_header nack = probe.header;
    nack.type = ATP_TYPE_NACK;
    nack.flags = 0;
    nack.lanes = ATP_DTYPE_INT32;  // as it was sent: floats stay floats
    wire::encode_header(nack, packet);
    return true;
}

}  // namespace atp::policy
