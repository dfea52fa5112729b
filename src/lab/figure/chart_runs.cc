// SPDX-License-Identifier: Apache-2.0
#include "figure/chart_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "figure/table.h"

namespace atp::figure {
namespace {

constexpr double widest_gap = 0.15;

// One row of values for each run.
struct Spread {
    std::vector<double> middle;
    std::vector<double> low;
    std::vector<double> high;
};

Spread spread_of(const std::vector<const std::vector<double>*>& runs) {
    Spread spread;
    for (std::size_t i = 0; i < runs.front()->size(); ++i) {
        std::vector<double> values;
        for (const auto* run : runs) values.push_back((*run)[i]);
        // A run without a value leaves none to the others.
        const auto none = std::ranges::find_if(values, [](double value) { return std::isnan(value); });
        if (none != values.end()) std::ranges::fill(values, *none);
        std::ranges::sort(values);
        spread.middle.push_back(values[values.size() / 2]);
        spread.low.push_back(values.front());
        spread.high.push_back(values.back());
    }
    return spread;
}

void merge(LineChart& chart, const std::vector<const LineChart*>& runs) {
    for (std::size_t i = 0; i < chart.lines.size(); ++i) {
        Line& line = chart.lines[i];
        std::vector<const std::vector<double>*> rows;
        for (const LineChart* run : runs) {
            if (run->lines.size() != chart.lines.size() || run->lines[i].x != line.x) return;
            rows.push_back(&run->lines[i].y);
        }
        Spread spread = spread_of(rows);
        line.y = std::move(spread.middle);
        line.low = std::move(spread.low);
        line.high = std::move(spread.high);
    }
}

void merge(BarChart& chart, const std::vector<const BarChart*>& runs) {
    for (std::size_t i = 0; i < chart.bars.size(); ++i) {
        std::vector<const std::vector<double>*> rows;
        for (const BarChart* run : runs) rows.push_back(&run->bars[i].values);
        Spread spread = spread_of(rows);
        chart.bars[i].values = std::move(spread.middle);
        chart.bars[i].low = std::move(spread.low);
        chart.bars[i].high = std::move(spread.high);
    }
}

// A curve at one place, for both kinds of charts.
struct Point {
    std::string where;
    double value = 0;
    double low = 0;
    double high = 0;
};
struct Curve {
    std::string_view name;
    std::vector<Point> points;
};

double at(const std::vector<double>& ends, std::size_t i, double value) { return i < ends.size() ? ends[i] : value; }

std::vector<Curve> curves_of(const LineChart& chart) {
    std::vector<Curve> curves;
    for (const Line& line : chart.lines) {
        Curve curve{.name = line.name, .points = {}};
        for (std::size_t i = 0; i < line.x.size(); ++i) {
            curve.points.push_back({.where = fmt::format("{} = {}", chart.x.label, number_text(line.x[i])),
                                    .value = line.y[i],
                                    .low = at(line.low, i, line.y[i]),
                                    .high = at(line.high, i, line.y[i])});
        }
        curves.push_back(std::move(curve));
    }
    return curves;
}

std::vector<Curve> curves_of(const BarChart& chart) {
    std::vector<Curve> curves;
    for (const Bars& bars : chart.bars) {
        Curve curve{.name = bars.name, .points = {}};
        for (std::size_t i = 0; i < bars.values.size(); ++i) {
            curve.points.push_back({.where = chart.categories[i],
                                    .value = bars.values[i],
                                    .low = at(bars.low, i, bars.values[i]),
                                    .high = at(bars.high, i, bars.values[i])});
        }
        curves.push_back(std::move(curve));
    }
    return curves;
}

// 0 if the measured interval reaches the simulated value, or if one of them is no number.
double gap_between(const Point& measured, const Point& calculated) {
    const double gap = calculated.value / measured.value - 1;
    const bool reached = measured.low <= calculated.high && calculated.low <= measured.high;
    return !std::isfinite(gap) || reached || std::abs(gap) <= widest_gap ? 0 : gap;
}

std::string gap_text(const Curve& measured, const Curve& calculated) {
    double widest = 0;
    std::string where;
    for (const Point& point : measured.points) {
        const auto same = std::ranges::find(calculated.points, point.where, &Point::where);
        if (same == calculated.points.end()) continue;
        const double gap = gap_between(point, *same);
        if (std::abs(gap) <= std::abs(widest)) continue;
        widest = gap;
        where = point.where;
    }
    if (widest == 0) return {};
    return fmt::format("{} at {}: the simulator has {:+.0f} % of what was measured", measured.name, where,
                       widest * 100);
}

}  // namespace

std::vector<Chart> merged(const std::vector<std::vector<Chart>>& runs) {
    std::vector<Chart> charts = runs.front();
    if (runs.size() < 2) return charts;
    for (std::size_t i = 0; i < charts.size(); ++i) {
        std::visit(
            [&](auto& chart) {
                std::vector<const std::remove_reference_t<decltype(chart)>*> same;
                for (const auto& run : runs) {
                    same.push_back(&std::get<std::remove_reference_t<decltype(chart)>>(run.at(i)));
                }
                merge(chart, same);
            },
            charts[i]);
    }
    return charts;
}

std::vector<std::string> gaps_of(std::span<const Chart> charts) {
    std::vector<std::string> gaps;
    for (const Chart& chart : charts) {
        const std::vector<Curve> curves = std::visit([](const auto& one) { return curves_of(one); }, chart);
        for (const Curve& measured : curves) {
            const auto calculated =
                std::ranges::find(curves, fmt::format("{}{}", measured.name, simulated), &Curve::name);
            if (calculated == curves.end()) continue;
            if (std::string text = gap_text(measured, *calculated); !text.empty()) gaps.push_back(std::move(text));
        }
    }
    return gaps;
}

}  // namespace atp::figure
