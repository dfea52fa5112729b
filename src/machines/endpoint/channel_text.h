// SPDX-License-Identifier: Apache-2.0
// The errors and texts of a channel: what happened, to which rank or switch, and what to do next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "endpoint/channel_machine.h"
#include "protocol/variant.h"

namespace atp::endpoint {
inline namespace ATP_VARIANT {

// Its operation is `wait` unless the cause ended the joining; a caller that knows the operation replaces it.
[[nodiscard]] Error error_of(const ChannelCause& cause, const ChannelMachineConfig& config);

// What the tree waits for: "rank 3 did not join".
[[nodiscard]] std::string waiting_text(const control::MemberCause& missing, const ChannelMachineConfig& config);
// The error that ended the channel, for an operation that was in flight, and for one that was submitted later.
[[nodiscard]] Error error_of_part(Error first, Operation operation, Duration since_begun);
[[nodiscard]] Error error_after_end(Error first, Operation operation);
// For whom the others wait, and how long.
[[nodiscard]] std::string slow_text(const wire::Pace& pace, const ChannelMachineConfig& config);
// The tree is not ready after `elapsed`. `waiting`: the last waiting_text(); empty: the switch did not answer.
[[nodiscard]] Error error_of_slow_join(const std::string& waiting, Duration elapsed,
                                       const ChannelMachineConfig& config);

// The ranks at these places of the tree. `members` 0: all members of the units.
[[nodiscard]] std::vector<std::uint32_t> ranks_in(const ChannelMachineConfig& config, std::uint32_t units,
                                                  std::uint32_t members);

}  // namespace ATP_VARIANT
}  // namespace atp::endpoint
