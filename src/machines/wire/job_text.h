// SPDX-License-Identifier: Apache-2.0
// The text of a job number. drivers/comm/host_formation.cc draws the number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atp::wire {

// A job number as logs, errors, reports, JSON and traces show it: eight hexadecimal digits, "0000002a".
[[nodiscard]] std::string job_to_string(std::uint32_t job);
// Reads that form only: fewer digits could also be meant as a decimal number.
[[nodiscard]] std::optional<std::uint32_t> parse_job(std::string_view text);

}  // namespace atp::wire
