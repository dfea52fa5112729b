// SPDX-License-Identifier: Apache-2.0
#include "base/dissent.h"

#include <algorithm>
#include <vector>

namespace atp {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        if (end != 0) words.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

}  // namespace

std::optional<Dissent> dissent_of(std::span<const std::string> values) {
    const std::string* usual = nullptr;
    std::ptrdiff_t most = 0;
    for (const std::string& value : values) {
        const std::ptrdiff_t count = std::ranges::count(values, value);
        if (count > most) most = count, usual = &value;
    }
    const auto odd = std::ranges::find_if(values, [&](const std::string& value) { return value != *usual; });
    if (odd == values.end()) return std::nullopt;
    return Dissent{.rank = static_cast<std::uint32_t>(odd - values.begin()), .own = *odd, .others = *usual};
}

std::string words_only_in(std::string_view text, std::string_view other) {
    const std::vector<std::string_view> known = words_of(other);
    std::string list;
    for (const std::string_view word : words_of(text)) {
        if (std::ranges::find(known, word) != known.end()) continue;
        if (!list.empty()) list += ' ';
        list += word;
    }
    return list;
}

}  // namespace atp
