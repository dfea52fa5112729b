// SPDX-License-Identifier: Apache-2.0
// Rows of texts.
#pragma once

#include <string>
#include <vector>

namespace atp::figure {

struct Table {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows{};
};

// The shortest text with the same six leading digits.
[[nodiscard]] std::string number_text(double number);
// RFC 4180. The first line holds the columns.
[[nodiscard]] std::string to_csv(const Table& table);
// Aligned columns for users.
[[nodiscard]] std::string to_text(const Table& table);

}  // namespace atp::figure
