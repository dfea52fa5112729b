// SPDX-License-Identifier: Apache-2.0
#include "figure/chart_table.h"

#include <map>

namespace atp::figure {
namespace {

void add_points(const LineChart& chart, Table& table) {
    for (const Line& line : chart.lines) {
        for (std::size_t i = 0; i < line.x.size(); ++i) {
            table.rows.push_back({chart.title, line.name, number_text(line.x[i]), number_text(line.y[i])});
        }
    }
}

void add_points(const BarChart& chart, Table& table) {
    for (const Bars& bars : chart.bars) {
        for (std::size_t i = 0; i < bars.values.size(); ++i) {
            table.rows.push_back({chart.title, bars.name, chart.categories[i], number_text(bars.values[i])});
        }
    }
}

Table table_of_one(const LineChart& chart) {
    Table table{.columns = {chart.x.label}};
    std::map<double, std::vector<std::string>> rows;
    for (std::size_t i = 0; i < chart.lines.size(); ++i) {
        const Line& line = chart.lines[i];
        table.columns.push_back(line.name);
        for (std::size_t k = 0; k < line.x.size(); ++k) {
            const auto row = rows.try_emplace(line.x[k], chart.lines.size()).first;
            row->second[i] = number_text(line.y[k]);
        }
    }
    for (const auto& [x, values] : rows) {
        table.rows.push_back({number_text(x)});
        table.rows.back().insert(table.rows.back().end(), values.begin(), values.end());
    }
    return table;
}

Table table_of_one(const BarChart& chart) {
    Table table{.columns = {""}};
    for (const Bars& bars : chart.bars) table.columns.push_back(bars.name);
    for (std::size_t i = 0; i < chart.categories.size(); ++i) {
        table.rows.push_back({chart.categories[i]});
        for (const Bars& bars : chart.bars) table.rows.back().push_back(number_text(bars.values[i]));
    }
    return table;
}

}  // namespace

Table table_of(const Chart& chart) {
    return std::visit([](const auto& one) { return table_of_one(one); }, chart);
}

Table points_of(std::span<const Chart> charts) {
    Table table{.columns = {"chart", "series", "x", "y"}};
    for (const Chart& chart : charts) {
        std::visit([&table](const auto& one) { add_points(one, table); }, chart);
    }
    return table;
}

}  // namespace atp::figure
