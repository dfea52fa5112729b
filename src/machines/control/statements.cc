// SPDX-License-Identifier: Apache-2.0
#include "control/statements.h"

#include <algorithm>
#include <tuple>

namespace atp::control {
namespace {

bool is_lower(const wire::Statement& a, const wire::Statement& b) {
    return std::tie(a.unit, a.member) < std::tie(b.unit, b.member);
}

bool comes_first(const wire::Statement& a, const wire::Statement& b) {
    return a.count != b.count ? a.count > b.count : is_lower(a, b);
}

}  // namespace

void add_statements(std::vector<wire::Statement>& all, std::span<const wire::Statement> more) {
    for (const wire::Statement& statement : more) {
        const auto same = std::ranges::find(all, statement.text, &wire::Statement::text);
        if (same == all.end()) {
            all.push_back(statement);
            continue;
        }
        const std::uint32_t count = std::uint32_t{same->count} + statement.count;
        if (is_lower(statement, *same)) *same = statement;
        same->count = static_cast<std::uint16_t>(std::min(count, std::uint32_t{UINT16_MAX}));
    }
    std::ranges::sort(all, comes_first);
    if (all.size() > wire::max_statements) all.resize(wire::max_statements);
}

bool differ_at(std::span<const wire::Statement> statements, std::string_view place) {
    return std::ranges::count_if(statements,
                                 [place](const wire::Statement& each) { return each.text.ends_with(place); }) > 1;
}

std::uint32_t count_of(std::span<const wire::Statement> statements) {
    std::uint32_t count = 0;
    for (const wire::Statement& statement : statements) count += statement.count;
    return count;
}

}  // namespace atp::control
