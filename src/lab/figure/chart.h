// SPDX-License-Identifier: Apache-2.0
// Charts as data, and the picture that they make.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "figure/scale.h"

namespace atp::figure {

// A dashed line across the chart: what the paper says, what a link can carry.
struct Level {
    std::string name;
    double value = 0;
};

struct Line {
    std::string name;
    std::vector<double> x{};
    std::vector<double> y{};  // as many
    bool markers = true;      // points apart rather than a course
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
    std::vector<double> values{};  // one of each category; none where it is not a number
};

struct BarChart {
    std::string title;
    Axis y{};
    std::vector<std::string> categories{};
    std::vector<Bars> bars{};
    std::vector<Level> levels{};
};

using Chart = std::variant<LineChart, BarChart>;

// Two beside each other.
[[nodiscard]] std::string to_svg(std::string_view title, std::span<const Chart> charts);

}  // namespace atp::figure
