// SPDX-License-Identifier: Apache-2.0
// The error queue of a UDP socket that has IP_RECVERR or IPV6_RECVERR: errors of packets that it sent earlier.
#pragma once

#include <optional>

#include "wire/send_error.h"

namespace atp::net {

// Takes reports from the queue up to the first one that a SendError can express. nullopt: there is none. Never waits.
[[nodiscard]] std::optional<wire::SendError> take_queued_error(int descriptor);

// After an error of an earlier packet, the next call that sends or receives fails once with this errno, and has no
// effect. True: the errno may have that cause.
[[nodiscard]] bool may_concern_earlier_packet(int code);

}  // namespace atp::net
