// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace atp {

// The name that was probably meant: a few letters differ, or the typed word is its begin. Empty: none is near.
[[nodiscard]] std::string nearest(std::string_view typed, std::span<const std::string> names);

}  // namespace atp
