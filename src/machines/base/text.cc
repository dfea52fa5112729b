// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

namespace atp {
namespace {

constexpr std::size_t most_named = 8;

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

}  // namespace atp
