// SPDX-License-Identifier: Apache-2.0
// Rules that wire.toml names: what several fields of a joining message must fulfil together.
#pragma once

#include <cstdint>

#include "wire/join_messages.h"

namespace atp::wire {

// Members and units are numbered from bit 0 without gaps.
[[nodiscard]] bool has_no_gap(std::uint32_t mask);
[[nodiscard]] bool is_positive_and_finite(double value);
[[nodiscard]] bool terms_fit(const ChannelTerms& terms);
[[nodiscard]] bool unit_fits(const JoiningUnit& unit);
// A JOIN to level 0 or 1 covers one unit. A JOIN to level 2, from the last switch, covers all units.
[[nodiscard]] bool join_fits(const Join& join);

}  // namespace atp::wire
