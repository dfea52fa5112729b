// SPDX-License-Identifier: Apache-2.0
#include "base/suggestion.h"

#include <algorithm>
#include <vector>

namespace atp {
namespace {

// Characters to insert, remove, replace or swap with their neighbour, to make one text of the other.
std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> least(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                least[i][j] = i + j;
                continue;
            }
            const std::size_t replaced = least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            least[i][j] = std::min({replaced, least[i - 1][j] + 1, least[i][j - 1] + 1});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
        }
    }
    return least[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view typed, std::span<const std::string> names) {
    constexpr std::size_t shortest_begin = 2;
    const auto without_dashes = [](std::string_view name) {
        return name.substr(std::min(name.find_first_not_of('-'), name.size()));
    };
    const std::string_view word = without_dashes(typed);
    std::size_t least = std::min(2 + word.size() / 4, word.size());
    std::string found;
    for (const std::string& name : names) {
        const bool begins = word.size() >= shortest_begin && without_dashes(name).starts_with(word);
        const std::size_t away = begins ? 1 : edits(word, without_dashes(name));
        if (away >= least) continue;
        least = away;
        found = name;
    }
    return found;
}

}  // namespace atp
