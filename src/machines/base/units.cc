// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <span>
#include <string>

namespace atp {
namespace {

struct UnitSuffix {
    std::string_view name;
    double factor;
};

constexpr std::array<UnitSuffix, 9> size_units{{{"", 1},
                                                {"B", 1},
                                                {"kB", 1e3},
                                                {"KB", 1e3},
                                                {"MB", 1e6},
                                                {"GB", 1e9},
                                                {"KiB", 1024.0},
                                                {"MiB", 1024.0 * 1024.0},
                                                {"GiB", 1024.0 * 1024.0 * 1024.0}}};
constexpr std::array<UnitSuffix, 13> rate_units{{{"", 1},
                                                 {"bps", 1},
                                                 {"bit", 1},
                                                 {"bit/s", 1},
                                                 {"kbps", 1e3},
                                                 {"kbit", 1e3},
                                                 {"kbit/s", 1e3},
                                                 {"mbps", 1e6},
                                                 {"mbit", 1e6},
                                                 {"mbit/s", 1e6},
                                                 {"gbps", 1e9},
                                                 {"gbit", 1e9},
                                                 {"gbit/s", 1e9}}};
constexpr std::array<UnitSuffix, 1> no_units{{{"", 1}}};
constexpr std::array<UnitSuffix, 4> duration_units{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
// Larger than every useful value, and exact as a double.
constexpr double largest = 9e15;

std::optional<double> parse_any(std::string_view text, std::span<const UnitSuffix> units) {
    double number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
    if (error != std::errc() || !(number >= 0)) return std::nullopt;
    const auto unit =
        std::ranges::find(units, std::string_view(end, static_cast<std::size_t>(last - end)), &UnitSuffix::name);
    return unit == units.end() ? std::nullopt : std::optional(number * unit->factor);
}

std::optional<double> parse(std::string_view text, std::span<const UnitSuffix> units) {
    const auto value = parse_any(text, units);
    return value && *value <= largest ? value : std::nullopt;
}

std::string in_lower_case(std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char character) { return static_cast<char>(std::tolower(character)); });
    return lower;
}

// The number, if the whole text is one number.
template <class Number>
std::optional<Number> parse_all(std::string_view text) {
    Number value{};
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    return error == std::errc() && end == last ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
    const auto value = parse(text, size_units);
    if (!value) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
}

// Some programs write 25gbit, others 25Gbit.
std::optional<std::int64_t> parse_rate(std::string_view text) {
    const auto value = parse(in_lower_case(text), rate_units);
    if (!value || *value < 1) return std::nullopt;
    return static_cast<std::int64_t>(*value);
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
    if (text == "0") return std::chrono::nanoseconds::zero();
    const auto value = parse(text, duration_units);
    if (!value) return std::nullopt;
    return std::chrono::nanoseconds(std::llround(*value));
}

std::optional<std::chrono::nanoseconds> parse_wait(std::string_view text) {
    const auto wait = parse_duration(text);
    return wait && *wait > std::chrono::nanoseconds::zero() ? wait : std::nullopt;
}

std::optional<double> parse_percent(std::string_view text) {
    const bool percent = text.ends_with('%');
    if (percent) text.remove_suffix(1);
    if (percent && text.ends_with(' ')) text.remove_suffix(1);
    const auto value = parse(text, no_units);
    if (!value) return std::nullopt;
    const double share = percent ? *value / 100 : *value;
    return share <= 1 ? std::optional(share) : std::nullopt;
}

bool is_too_large(std::string_view text) {
    const auto exceeds = [](std::optional<double> value) { return value.value_or(0) > largest; };
    return exceeds(parse_any(text, size_units)) || exceeds(parse_any(in_lower_case(text), rate_units)) ||
           exceeds(parse_any(text, duration_units));
}

std::optional<std::uint64_t> parse_whole(std::string_view text, std::uint64_t least, std::uint64_t most) {
    const auto value = parse_all<std::uint64_t>(text);
    return value && *value >= least && *value <= most ? value : std::nullopt;
}

std::string whole_forms(std::uint64_t least, std::uint64_t most) {
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
}

std::optional<double> parse_real(std::string_view text, double least, double most) {
    const auto value = parse_all<double>(text);
    return value && *value >= least && *value <= most ? value : std::nullopt;
}

std::string duration_text(std::chrono::nanoseconds duration) {
    const std::int64_t ns = duration.count();
    if (ns != 0 && ns % 1'000'000'000 == 0) return std::to_string(ns / 1'000'000'000) + "s";
    if (ns != 0 && ns % 1'000'000 == 0) return std::to_string(ns / 1'000'000) + "ms";
    if (ns != 0 && ns % 1'000 == 0) return std::to_string(ns / 1'000) + "us";
    return std::to_string(ns) + "ns";
}

}  // namespace atp
