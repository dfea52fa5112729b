// SPDX-License-Identifier: Apache-2.0
#include "figure/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "figure/frame.h"
#include "figure/svg.h"

namespace atp::figure {
namespace {

constexpr double chart_width = 540;
constexpr double lone_chart_width = 760;
constexpr double chart_height = 350;
constexpr double margin = 14;
constexpr double heading_height = 34;
constexpr std::size_t charts_a_row = 2;

// A line with more points has no markers.
constexpr std::size_t markers_most = 40;
// With more bars there is no room for their numbers.
constexpr std::size_t numbers_most = 28;
constexpr double bars_share = 0.78;  // share of a category's width

void append(std::vector<double>& numbers, const std::vector<Level>& levels) {
    for (const Level& level : levels) numbers.push_back(level.value);
}

bool is_simulated(std::string_view name) { return name.ends_with(simulated); }

bool has_markers(const Line& line) { return line.markers && line.x.size() <= markers_most && !is_simulated(line.name); }

// A simulation has the series of what it simulates. The others count without simulations.
template <class Series>
std::size_t series_of(const std::vector<Series>& all, std::size_t index) {
    const auto base = [](std::string_view name) {
        return is_simulated(name) ? name.substr(0, name.size() - simulated.size()) : name;
    };
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i <= index; ++i) {
        const std::string_view name = base(all[i].name);
        if (std::ranges::find(known, name) == known.end()) known.push_back(name);
    }
    return static_cast<std::size_t>(std::ranges::find(known, base(all[index].name)) - known.begin());
}

// A measured line whose simulation is in the chart consists of points.
bool is_joined(const LineChart& chart, const Line& line) {
    const std::string calculated = line.name + std::string(simulated);
    return std::ranges::find(chart.lines, calculated, &Line::name) == chart.lines.end();
}

// Several levels with one name have one entry.
void append(std::vector<LegendEntry>& legend, const std::vector<Level>& levels) {
    for (const Level& level : levels) {
        const bool known = std::ranges::any_of(legend, [&](const LegendEntry& e) { return e.name == level.name; });
        if (!known) legend.push_back({.name = level.name, .kind = LegendEntry::Kind::level, .series = 0});
    }
}

std::vector<LegendEntry> legend_of(const LineChart& chart) {
    std::vector<LegendEntry> legend;
    using Kind = LegendEntry::Kind;
    for (std::size_t i = 0; i < chart.lines.size(); ++i) {
        const Line& line = chart.lines[i];
        const Kind marked = is_joined(chart, line) ? Kind::marked_line : Kind::points;
        legend.push_back(
            {.name = line.name, .kind = has_markers(line) ? marked : Kind::line, .series = series_of(chart.lines, i)});
    }
    append(legend, chart.levels);
    return legend;
}

std::vector<LegendEntry> legend_of(const BarChart& chart) {
    std::vector<LegendEntry> legend;
    for (std::size_t i = 0; i < chart.bars.size(); ++i) {
        const bool pale = is_simulated(chart.bars[i].name);
        legend.push_back({.name = chart.bars[i].name,
                          .kind = pale ? LegendEntry::Kind::pale_bar : LegendEntry::Kind::bar,
                          .series = series_of(chart.bars, i)});
    }
    append(legend, chart.levels);
    return legend;
}

Scale y_scale(const Frame& frame, const Axis& axis, const std::vector<double>& numbers) {
    return {axis, numbers, frame.plot().top + frame.plot().height, frame.plot().top};
}

void draw_interval(Svg& svg, double x, const Scale& y, double low, double high, std::string_view colour) {
    if (!(low < high) || !y.shows(low)) return;
    constexpr double half_cap = 3;
    const double top = y.pixel_of(high);
    const double bottom = y.pixel_of(low);
    svg.line({.x = x, .y = top}, {.x = x, .y = bottom}, {.colour = colour, .width = 1.2});
    for (const double end : {top, bottom}) {
        svg.line({.x = x - half_cap, .y = end}, {.x = x + half_cap, .y = end}, {.colour = colour, .width = 1.2});
    }
}

void draw_line(Svg& svg, const LineChart& chart, std::size_t index, const Scale& x, const Scale& y) {
    const Line& line = chart.lines[index];
    const std::size_t series = series_of(chart.lines, index);
    std::vector<Spot> spots;
    for (std::size_t i = 0; i < std::min(line.x.size(), line.y.size()); ++i) {
        const bool shown = std::isfinite(line.y[i]) && x.shows(line.x[i]) && y.shows(line.y[i]);
        if (!shown) continue;
        spots.push_back({.x = x.pixel_of(line.x[i]), .y = y.pixel_of(line.y[i])});
        if (has_markers(line) && i < line.low.size()) {
            draw_interval(svg, spots.back().x, y, line.low[i], line.high[i], colour_of(series));
        }
    }
    if (is_joined(chart, line)) {
        svg.polyline(spots, {.colour = colour_of(series), .width = has_markers(line) ? 2.0 : 1.6});
    }
    if (!has_markers(line)) return;
    for (const Spot& spot : spots) draw_marker(svg, spot, series);
}

void draw(Svg& svg, const Area& area, const LineChart& chart) {
    Frame frame(svg, area, chart.title, legend_of(chart));
    std::vector<double> xs;
    std::vector<double> ys;
    for (const Line& line : chart.lines) {
        xs.insert(xs.end(), line.x.begin(), line.x.end());
        for (const auto* values : {&line.y, &line.low, &line.high}) {
            ys.insert(ys.end(), values->begin(), values->end());
        }
    }
    append(ys, chart.levels);
    const Scale x(chart.x, xs, frame.plot().left, frame.plot().left + frame.plot().width);
    const Scale y = y_scale(frame, chart.y, ys);
    frame.draw_y_axis(chart.y, y);
    frame.draw_x_axis(chart.x, x);
    frame.draw_levels(chart.levels, y);
    for (std::size_t i = 0; i < chart.lines.size(); ++i) draw_line(svg, chart, i, x, y);
}

std::string bar_text(double value) {
    return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

bool has_numbers(const BarChart& chart) { return chart.bars.size() * chart.categories.size() <= numbers_most; }

// Room for the number above the longest bar.
void add_headroom(std::vector<double>& values) {
    double most = 0;
    for (const double value : values) most = std::isfinite(value) ? std::max(most, value) : most;
    values.push_back(most * 1.05);
}

struct PlacedBar {
    std::string colour;
    double value = 0;
    double low = 0;
    double high = 0;
    Spot corner{};
    double width = 0;
};

// The bars of one category, side by side.
std::vector<PlacedBar> place_bars(const BarChart& chart, std::size_t category, const Area& room, const Scale& y) {
    const double width = room.width * bars_share / static_cast<double>(chart.bars.size());
    const double left = room.left + room.width * (1 - bars_share) / 2;
    std::vector<PlacedBar> placed;
    for (std::size_t i = 0; i < chart.bars.size(); ++i) {
        const Bars& bars = chart.bars[i];
        const double value = bars.values[category];
        if (!std::isfinite(value) || !y.shows(value)) continue;
        const Spot corner{.x = left + width * static_cast<double>(i), .y = y.pixel_of(value)};
        const std::size_t series = series_of(chart.bars, i);
        const bool interval = category < bars.low.size();
        placed.push_back({.colour = is_simulated(bars.name) ? pale(colour_of(series)) : std::string(colour_of(series)),
                          .value = value,
                          .low = interval ? bars.low[category] : value,
                          .high = interval ? bars.high[category] : value,
                          .corner = corner,
                          .width = width * 0.94});
    }
    return placed;
}

void draw_category(Svg& svg, const std::vector<PlacedBar>& bars, std::string_view name, const Area& room,
                   const Scale& y) {
    const double bottom = room.top + room.height;
    for (const PlacedBar& bar : bars) {
        svg.rectangle(bar.corner, bar.width, bottom - bar.corner.y, bar.colour);
        draw_interval(svg, bar.corner.x + bar.width / 2, y, bar.low, bar.high, "#222222");
    }
    svg.text({.x = room.left + room.width / 2, .y = bottom + 19}, name, {.size = 11.5, .anchor = Anchor::middle});
}

void draw_numbers(Svg& svg, const std::vector<PlacedBar>& bars) {
    for (const PlacedBar& bar : bars) {
        svg.text({.x = bar.corner.x + bar.width / 2, .y = bar.corner.y - 4}, bar_text(bar.value),
                 {.size = 9.5, .anchor = Anchor::middle, .halo = true});
    }
}

void draw(Svg& svg, const Area& area, const BarChart& chart) {
    Frame frame(svg, area, chart.title, legend_of(chart));
    std::vector<double> values;
    for (const Bars& bars : chart.bars) {
        values.insert(values.end(), bars.values.begin(), bars.values.end());
        values.insert(values.end(), bars.high.begin(), bars.high.end());
    }
    append(values, chart.levels);
    if (has_numbers(chart)) add_headroom(values);
    Axis axis = chart.y;
    // The length of a bar shows its value only if the axis starts at 0.
    if (!axis.logarithmic && !axis.from) axis.from = 0;
    const Scale y = y_scale(frame, axis, values);
    frame.draw_y_axis(axis, y);
    Area room = frame.plot();
    svg.line({.x = room.left, .y = room.top + room.height}, {.x = room.left + room.width, .y = room.top + room.height},
             {.colour = "#555555"});
    room.width /= static_cast<double>(chart.categories.size());
    std::vector<PlacedBar> all;
    for (std::size_t i = 0; i < chart.categories.size(); ++i, room.left += room.width) {
        const std::vector<PlacedBar> bars = place_bars(chart, i, room, y);
        draw_category(svg, bars, chart.categories[i], room, y);
        all.insert(all.end(), bars.begin(), bars.end());
    }
    frame.draw_levels(chart.levels, y);
    if (has_numbers(chart)) draw_numbers(svg, all);
}

}  // namespace

std::string to_svg(std::string_view title, std::span<const Chart> charts) {
    const std::size_t columns = std::clamp<std::size_t>(charts.size(), 1, charts_a_row);
    const double each_width = columns == 1 ? lone_chart_width : chart_width;
    const std::size_t rows = (charts.size() + columns - 1) / columns;
    const double width = static_cast<double>(columns) * each_width + 2 * margin;
    Svg svg(width, heading_height + static_cast<double>(rows) * chart_height + 2 * margin);
    svg.text({.x = width / 2, .y = margin + 16}, title, {.size = 16, .anchor = Anchor::middle, .bold = true});
    for (std::size_t i = 0; i < charts.size(); ++i) {
        const std::size_t row = i / columns;
        const Area area{.left = margin + static_cast<double>(i % columns) * each_width,
                        .top = margin + heading_height + static_cast<double>(row) * chart_height,
                        .width = each_width,
                        .height = chart_height};
        std::visit([&](const auto& chart) { draw(svg, area, chart); }, charts[i]);
    }
    return std::move(svg).finish();
}

}  // namespace atp::figure
