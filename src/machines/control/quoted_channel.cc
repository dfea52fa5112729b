// SPDX-License-Identifier: Apache-2.0
#include "control/quoted_channel.h"

#include "wire/control.h"
#include "wire/packet.h"

namespace atp::control {

std::optional<ChannelKey> quoted_channel(std::span<const std::byte> bytes) {
    if (const auto type = wire::control_type(bytes)) {
        constexpr std::size_t fields_bytes = 8 + 4 + 8 + 2;  // nonce, job, token, channel: in this order in all of them
        using Type = wire::ControlType;
        const bool joining = (*type >= Type::join && *type <= Type::leave) || *type == Type::retry;
        if (!joining || bytes.size() < wire::control_prefix_bytes + fields_bytes) return std::nullopt;
        const std::byte* const fields = bytes.data() + wire::control_prefix_bytes + sizeof(std::uint64_t);
        return ChannelKey{wire::load_u32(fields), wire::load_u64(fields + 4), wire::load_u16(fields + 12)};
    }
    constexpr std::size_t packet_bytes = ATP_OFFSET_TOKEN + sizeof(std::uint64_t);  // channel and job come before
    if (bytes.size() < packet_bytes || wire::load_u8(bytes.data()) != ATP_VERSION) return std::nullopt;
    if (wire::load_u8(bytes.data() + ATP_OFFSET_TYPE) >= ATP_TYPE_CONTROL) return std::nullopt;
    return ChannelKey{wire::load_u32(bytes.data() + ATP_OFFSET_JOB), wire::load_u64(bytes.data() + ATP_OFFSET_TOKEN),
                      wire::load_u16(bytes.data() + ATP_OFFSET_CHANNEL)};
}

}  // namespace atp::control
