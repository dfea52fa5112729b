// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "control/tenants.h"
#include "wire/control.h"

namespace atp::control {

// Id of the key whose tenant has the job, as the code of a JOINED proves it to whoever has the file of tenants of the
// switch that sent it. 0: it proves none. docs/spec/codes.md is normative.
[[nodiscard]] std::uint32_t charged_key(const Tenants& tenants, const wire::Joined& joined,
                                        std::span<const std::byte> bytes);

}  // namespace atp::control
