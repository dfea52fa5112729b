// SPDX-License-Identifier: Apache-2.0
#include "figure/frame.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <numbers>

namespace atp::figure {
namespace {

constexpr double title_height = 26;
constexpr double legend_height = 18;
constexpr double left_margin = 74;
constexpr double right_margin = 18;
constexpr double bottom_margin = 50;
constexpr double sample_width = 22;  // line in the legend
constexpr double legend_gap = 14;
constexpr double title_size = 14;
constexpr double label_size = 12.5;
constexpr double tick_size = 11.5;
constexpr double marker_radius = 3.6;

constexpr std::string_view grid_colour = "#e4e4e4";
constexpr std::string_view axis_colour = "#555555";
constexpr std::string_view level_dashes = "6 4";

constexpr std::array<std::string_view, 8> colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#222222", "#8a6d00"};

// Polygon with corners on a circle, the first at `first_angle`.
void draw_polygon(Svg& svg, Spot center, unsigned corners, double radius, double first_angle, std::string_view fill) {
    std::vector<Spot> spots;
    for (unsigned i = 0; i < corners; ++i) {
        const double angle = first_angle + 2 * std::numbers::pi * i / corners;
        spots.push_back({.x = center.x + radius * std::cos(angle), .y = center.y + radius * std::sin(angle)});
    }
    svg.polygon(spots, fill);
}

void draw_sample(Svg& svg, Spot at, const LegendEntry& entry) {
    using Kind = LegendEntry::Kind;
    const Spot end{.x = at.x + sample_width, .y = at.y};
    const Spot middle{.x = at.x + sample_width / 2, .y = at.y};
    switch (entry.kind) {
        case Kind::bar: svg.rectangle({.x = end.x - 12, .y = at.y - 6}, 12, 12, colour_of(entry.series)); break;
        case Kind::pale_bar:
            svg.rectangle({.x = end.x - 12, .y = at.y - 6}, 12, 12, pale(colour_of(entry.series)));
            break;
        case Kind::points: draw_marker(svg, middle, entry.series); break;
        case Kind::level: svg.line(at, end, {.colour = axis_colour, .width = 1.5, .dashes = level_dashes}); break;
        case Kind::marked_line: draw_marker(svg, middle, entry.series); [[fallthrough]];
        case Kind::line: svg.line(at, end, {.colour = colour_of(entry.series), .width = 2}); break;
    }
}

}  // namespace

std::string_view colour_of(std::size_t series) { return colours[series % colours.size()]; }

std::string pale(std::string_view colour) {
    unsigned value = 0;
    std::from_chars(colour.data() + 1, colour.data() + colour.size(), value, 16);
    return fmt::format("#{:06x}", ((value >> 1U) & 0x7f7f7fU) + 0x808080U);
}

void draw_marker(Svg& svg, Spot at, std::size_t series) {
    constexpr double up = -std::numbers::pi / 2;
    const std::string_view colour = colour_of(series);
    switch (series % 4) {
        case 0: svg.circle(at, marker_radius, colour); break;
        case 1: draw_polygon(svg, at, 4, marker_radius * 1.3, std::numbers::pi / 4, colour); break;
        case 2: draw_polygon(svg, at, 3, marker_radius * 1.4, up, colour); break;
        default: draw_polygon(svg, at, 4, marker_radius * 1.4, up, colour);
    }
}

Frame::Frame(Svg& svg, const Area& area, std::string_view title, const std::vector<LegendEntry>& legend)
    : svg_(svg),
      plot_{.left = area.left + left_margin,
            .top = area.top + title_height,
            .width = area.width - left_margin - right_margin,
            .height = area.height - title_height - bottom_margin} {
    svg_.text({.x = area.left + left_margin, .y = area.top + title_size}, title, {.size = title_size, .bold = true});
    draw_legend(area, legend);
}

// Above the plot, in as many rows as needed.
void Frame::draw_legend(const Area& area, const std::vector<LegendEntry>& legend) {
    Spot at{.x = plot_.left, .y = plot_.top + legend_height / 2};
    double rows = legend.empty() ? 0 : 1;
    for (const LegendEntry& entry : legend) {
        const double width = sample_width + 6 + width_of(entry.name, tick_size);
        if (at.x > plot_.left && at.x + width > area.left + area.width) {
            at = {.x = plot_.left, .y = at.y + legend_height};
            ++rows;
        }
        draw_sample(svg_, at, entry);
        svg_.text({.x = at.x + sample_width + 6, .y = at.y + 4}, entry.name, {.size = tick_size});
        at.x += width + legend_gap;
    }
    const double taken = rows * legend_height + 8;
    plot_.top += taken;
    plot_.height -= taken;
}

void Frame::draw_y_axis(const Axis& axis, const Scale& scale) {
    for (const Tick& tick : scale.ticks()) {
        const double y = scale.pixel_of(tick.value);
        svg_.line({.x = plot_.left, .y = y}, {.x = plot_.left + plot_.width, .y = y}, {.colour = grid_colour});
        svg_.text({.x = plot_.left - 7, .y = y + 4}, tick.text, {.size = tick_size, .anchor = Anchor::end});
    }
    svg_.text({.x = plot_.left - left_margin + 14, .y = plot_.top + plot_.height / 2}, axis.label,
              {.size = label_size, .anchor = Anchor::middle, .upwards = true});
    svg_.line({.x = plot_.left, .y = plot_.top}, {.x = plot_.left, .y = plot_.top + plot_.height},
              {.colour = axis_colour});
}

void Frame::draw_x_axis(const Axis& axis, const Scale& scale) {
    const double bottom = plot_.top + plot_.height;
    for (const Tick& tick : scale.ticks()) {
        const double x = scale.pixel_of(tick.value);
        svg_.line({.x = x, .y = bottom}, {.x = x, .y = bottom + 5}, {.colour = axis_colour});
        svg_.text({.x = x, .y = bottom + 19}, tick.text, {.size = tick_size, .anchor = Anchor::middle});
    }
    svg_.line({.x = plot_.left, .y = bottom}, {.x = plot_.left + plot_.width, .y = bottom}, {.colour = axis_colour});
    svg_.text({.x = plot_.left + plot_.width / 2, .y = bottom + 39}, axis.label,
              {.size = label_size, .anchor = Anchor::middle});
}

void Frame::draw_levels(std::span<const Level> levels, const Scale& y) {
    for (const Level& level : levels) {
        const double at = y.pixel_of(level.value);
        svg_.line({.x = plot_.left, .y = at}, {.x = plot_.left + plot_.width, .y = at},
                  {.colour = axis_colour, .width = 1.5, .dashes = level_dashes});
    }
}

}  // namespace atp::figure
