// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace atp {
namespace {

constexpr std::size_t most_named = 8;

struct Character {
    std::size_t bytes = 0;  // 0: no UTF-8
    std::uint32_t value = 0;

    // Also some that nobody sees, or that reorder the line.
    [[nodiscard]] bool is_control() const {
        const auto is_in = [this](std::uint32_t first, std::uint32_t last) { return value >= first && value <= last; };
        return is_in(0, 0x1F) || is_in(0x7F, 0x9F) || value == 0x061C || is_in(0x200B, 0x200F) ||
               is_in(0x2028, 0x202E) || is_in(0x2060, 0x206F) || value == 0xFEFF;
    }
    // A terminal shows letters of Chinese, Japanese and Korean, and pictures, twice as wide.
    [[nodiscard]] std::size_t columns() const {
        const auto is_in = [this](std::uint32_t first, std::uint32_t last) { return value >= first && value <= last; };
        const bool wide = is_in(0x1100, 0x115F) || is_in(0x2E80, 0xA4CF) || is_in(0xAC00, 0xD7A3) ||
                          is_in(0xF900, 0xFAFF) || is_in(0xFE30, 0xFE6F) || is_in(0xFF00, 0xFF60) ||
                          is_in(0xFFE0, 0xFFE6) || is_in(0x1F300, 0x1F64F) || is_in(0x1F680, 0x1F6FF) ||
                          is_in(0x1F900, 0x1F9FF) || is_in(0x20000, 0x3FFFD);
        return wide ? 2 : 1;
    }
};

// Of the front of `text`, which is not empty.
Character first_character(std::string_view text) {
    struct Width {
        std::uint8_t mask, lead;
        std::uint32_t least, most;  // a shorter encoding exists for smaller values
    };
    constexpr std::array widths{Width{0x80, 0x00, 0, 0x7F}, Width{0xE0, 0xC0, 0x80, 0x7FF},
                                Width{0xF0, 0xE0, 0x800, 0xFFFF}, Width{0xF8, 0xF0, 0x10000, 0x10FFFF}};
    constexpr unsigned bits_of_rest = 6;
    const auto first = static_cast<std::uint8_t>(text.front());
    for (std::size_t bytes = 1; bytes <= std::min(widths.size(), text.size()); ++bytes) {
        const Width& width = widths[bytes - 1];
        if ((first & width.mask) != width.lead) continue;
        std::uint32_t value = first & static_cast<std::uint8_t>(~width.mask);
        for (const char rest : text.substr(1, bytes - 1)) {
            if ((static_cast<std::uint8_t>(rest) & 0xC0U) != 0x80U) return {};
            value = value << bits_of_rest | (static_cast<std::uint8_t>(rest) & 0x3FU);
        }
        const bool surrogate = value >= 0xD800 && value < 0xE000;
        if (value < width.least || value > width.most || surrogate) return {};
        return {.bytes = bytes, .value = value};
    }
    return {};
}

}  // namespace

std::string list_some(std::span<const std::string> names) {
    if (names.empty()) return "nothing";
    const bool all = names.size() <= most_named;
    std::string last = all ? names.back() : fmt::format("{} more", names.size() - most_named);
    const auto before = names.first(all ? names.size() - 1 : most_named);
    if (before.empty()) return last;
    return fmt::format("{} and {}", fmt::join(before, ", "), last);
}

std::string counted(std::uint64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string printable(std::string_view text) {
    std::string clean(text);
    for (std::size_t at = 0; at < clean.size();) {
        const Character character = first_character(text.substr(at));
        const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
        if (character.bytes == 0 || character.is_control()) std::fill_n(clean.data() + at, bytes, '?');
        at += bytes;
    }
    return clean;
}

std::string_view first_columns(std::string_view text, std::size_t columns) {
    std::size_t at = 0;
    while (at < text.size()) {
        const Character character = first_character(text.substr(at));
        if (character.columns() > columns) break;
        columns -= character.columns();
        at += std::max<std::size_t>(character.bytes, 1);
    }
    return text.substr(0, at);
}

}  // namespace atp
