// SPDX-License-Identifier: Apache-2.0
// Charts as data, and their rendering as SVG.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "figure/scale.h"

namespace atp::figure {

// A dashed horizontal line, for example the paper's value or the capacity of a link.
struct Level {
    std::string name;
    double value = 0;
};

// A line or bars with this at the end of the name are the simulation of those without it. They have the same colour.
inline constexpr std::string_view simulated = ", simulated";

struct Line {
    std::string name;
    std::vector<double> x{};
    std::vector<double> y{};     // same length as x
    bool markers = true;         // separate points instead of a continuous curve
    std::vector<double> low{};   // interval of each point, if the line joins several runs
    std::vector<double> high{};  // same
};

struct LineChart {
    std::string title;
    Axis x{};
    Axis y{};
    std::vector<Line> lines{};
    std::vector<Level> levels{};
};

struct Bars {
    std::string name;
    std::vector<double> values{};  // by category; NaN: no bar
    std::vector<double> low{};     // interval of each value, if the bars join several runs
    std::vector<double> high{};    // same
};

struct BarChart {
    std::string title;
    Axis y{};
    std::vector<std::string> categories{};
    std::vector<Bars> bars{};
    std::vector<Level> levels{};
};

using Chart = std::variant<LineChart, BarChart>;

// Places two charts side by side.
[[nodiscard]] std::string to_svg(std::string_view title, std::span<const Chart> charts);

}  // namespace atp::figure
