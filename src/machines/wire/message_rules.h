// SPDX-License-Identifier: Apache-2.0
// Rules that wire.toml names: what a field, or several fields of a message together, must fulfil.
#pragma once

#include <cstdint>

#include "wire/formation_messages.h"

namespace atp::wire {

// Members and units are numbered from bit 0 without gaps.
[[nodiscard]] bool has_no_gap(std::uint32_t mask);
[[nodiscard]] bool is_positive_and_finite(double value);
// Not stated, or a time in which a member can repeat its JOINs.
[[nodiscard]] bool is_hold(std::uint32_t hold_ms);
[[nodiscard]] bool terms_fit(const ChannelTerms& terms);
[[nodiscard]] bool unit_fits(const JoiningUnit& unit);
// A JOIN to level 0 or 1 covers one unit. A JOIN to level 2, from the last switch, covers all units; without a cookie
// it may leave some out, since its receiver only answers with RETRY.
[[nodiscard]] bool join_fits(const Join& join);
[[nodiscard]] bool report_fits(const Report& report);
[[nodiscard]] bool is_rate(double bits_per_s);
[[nodiscard]] bool network_fits(const NetworkFacts& facts);

}  // namespace atp::wire
