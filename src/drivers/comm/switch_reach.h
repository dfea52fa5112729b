// SPDX-License-Identifier: Apache-2.0
// Whether a rank reaches its switch, and what the path to it carries.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/time.h"
#include "client/switch_client.h"
#include "comm/options.h"
#include "wire/address.h"

namespace atp::comm {

struct SwitchReach {
    wire::Address address;
    wire::Welcome welcome;
    std::uint32_t lanes = 0;  // of the longest packet on the path
};

// Asks until the deadline, also a switch that still looks for its parent.
[[nodiscard]] Result<wire::Welcome> greet(client::SwitchClient& client, Time deadline);
[[nodiscard]] Result<SwitchReach> reach_address(const wire::Address& address, const Options& options, Time deadline);
// The switch that the options name.
[[nodiscard]] Result<SwitchReach> reach_switch(const Options& options, Time deadline);

}  // namespace atp::comm
