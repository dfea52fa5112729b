// SPDX-License-Identifier: Apache-2.0
#include "figure/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace atp::figure {
namespace {

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + '"';
}

}  // namespace

std::string number_text(double number) { return fmt::format("{:.6g}", number); }

std::string to_csv(const Table& table) {
    std::string csv;
    const auto add = [&csv](std::size_t column, const std::string& text) {
        csv += (column == 0 ? "" : ",") + quoted(text);
    };
    for (std::size_t i = 0; i < table.columns.size(); ++i) add(i, table.columns[i]);
    for (const auto& row : table.rows) {
        csv += '\n';
        for (std::size_t i = 0; i < row.size(); ++i) add(i, row[i]);
    }
    return csv + '\n';
}

std::string to_text(const Table& table) {
    std::vector<std::vector<std::string>> lines{table.columns};
    lines.insert(lines.end(), table.rows.begin(), table.rows.end());
    std::vector<std::size_t> widths(table.columns.size());
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
    }
    std::string text;
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            text += fmt::format("{}{:>{}}", i == 0 ? "" : "  ", line[i], widths[i]);
        }
        text += '\n';
    }
    return text;
}

}  // namespace atp::figure
