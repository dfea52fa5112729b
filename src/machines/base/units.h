// SPDX-License-Identifier: Apache-2.0
// Sizes, rates, times and shares as people type them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atp {

// 4096, 4096B, 4kB, 4MB, 1.5GB are powers of ten; 25MiB, 64KiB, 1GiB powers of two. Rounded down to whole bytes.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);
inline constexpr std::string_view size_forms = "bytes, or a number with kB, MB, GB, KiB, MiB or GiB";

// Bits per second: 100Gbps, 500Mbit, 40Gbit/s, 9600. Always powers of ten; never zero.
[[nodiscard]] std::optional<std::int64_t> parse_rate(std::string_view text);
inline constexpr std::string_view rate_forms = "bits per second, or a number with kbps, Mbps, Gbps, kbit, Mbit or Gbit";

// 250ns, 5us, 1.5ms, 2s; a plain 0.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
inline constexpr std::string_view duration_forms = "a number with ns, us, ms or s";
// Likewise, but never zero.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_wait(std::string_view text);
inline constexpr std::string_view wait_forms = "a number above 0 with ns, us, ms or s";

// A share from 0 to 1: 0.1%, 5 %, or as it is, 0.001.
[[nodiscard]] std::optional<double> parse_percent(std::string_view text);
inline constexpr std::string_view percent_forms = "a number from 0 to 1, or from 0% to 100%";

// As parse_duration() reads it, in the largest unit that divides it.
[[nodiscard]] std::string duration_text(std::chrono::nanoseconds duration);

}  // namespace atp
