// SPDX-License-Identifier: Apache-2.0
// Sizes, rates, times and shares as text that users type.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atp {

// Bytes. kB, MB and GB are powers of ten; KiB, MiB and GiB are powers of two. Examples: 4096, 4096B, 4kB, 1.5GB,
// 25MiB. The result is rounded down to whole bytes.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);
// Whole MB, for texts.
[[nodiscard]] constexpr std::uint64_t megabytes(std::uint64_t bytes) { return bytes / 1'000'000; }
inline constexpr std::string_view size_forms = "bytes, or a number with kB, MB, GB, KiB, MiB or GiB";

// Bits per second, at least 1, with powers of ten. Examples: 9600, 500Mbit, 40Gbit/s, 100Gbps.
[[nodiscard]] std::optional<std::int64_t> parse_rate(std::string_view text);
inline constexpr std::string_view rate_forms = "bits per second, or a number with kbps, Mbps, Gbps, kbit, Mbit or Gbit";

// Examples: 250ns, 5us, 1.5ms, 2s, and 0 without a unit.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
inline constexpr std::string_view duration_forms = "a number with ns, us, ms or s";
// As parse_duration(), but above 0.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_wait(std::string_view text);
inline constexpr std::string_view wait_forms = "a number above 0 with ns, us, ms or s";

// A share from 0 to 1. Examples: 0.001, 0.1%, 5 %.
[[nodiscard]] std::optional<double> parse_percent(std::string_view text);
inline constexpr std::string_view percent_forms = "a number from 0 to 1, or from 0% to 100%";

// True for a number that has one of the units above, and is larger than parse_size(), parse_rate() or parse_duration()
// accepts: 9 x 10^15 bytes, bits per second or nanoseconds.
[[nodiscard]] bool is_too_large(std::string_view text);

// A decimal whole number without a sign.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text, std::uint64_t least, std::uint64_t most);
[[nodiscard]] std::string whole_forms(std::uint64_t least, std::uint64_t most);

// A decimal number, also with a point or an exponent.
[[nodiscard]] std::optional<double> parse_real(std::string_view text, double least, double most);

// Text that parse_duration() accepts, in the largest unit that divides `duration`.
[[nodiscard]] std::string duration_text(std::chrono::nanoseconds duration);

}  // namespace atp
