// SPDX-License-Identifier: Apache-2.0
#include "control/quoted_channel.h"

#include "wire/control.h"
#include "wire/packet.h"

namespace atp::control {

std::optional<QuotedChannel> quoted_channel(std::span<const std::byte> bytes) {
    constexpr std::size_t fields_bytes = 4 + 4 + 2;  // job, token, channel: in this order in all of them
    if (bytes.empty()) return std::nullopt;
    const bool packet = wire::load_u8(bytes.data()) == ATP_VERSION;
    const auto type = wire::control_type(bytes);
    const bool joining = type && *type >= wire::ControlType::join && *type <= wire::ControlType::leave;
    if (!packet && !joining) return std::nullopt;
    const std::size_t at = packet ? std::size_t{ATP_OFFSET_JOB} : wire::control_prefix_bytes;
    if (bytes.size() < at + fields_bytes) return std::nullopt;
    const std::byte* const fields = bytes.data() + at;
    return QuotedChannel{wire::load_u32(fields), wire::load_u32(fields + 4), wire::load_u16(fields + 8)};
}

}  // namespace atp::control
