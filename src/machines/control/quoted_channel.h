// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "control/channel_key.h"

namespace atp::control {

// The channel of a packet or of a joining message, of which a report about a failed packet quotes the begin. Others can
// forge such a report, but they do not know the token that it has to quote. nullopt: another message, or too few bytes.
[[nodiscard]] std::optional<ChannelKey> quoted_channel(std::span<const std::byte> bytes);

}  // namespace atp::control
