// SPDX-License-Identifier: Apache-2.0
// The frame of a chart: title, legend, axes and grid; and the colours of its series.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "figure/chart.h"
#include "figure/svg.h"

namespace atp::figure {

// From the palette of Okabe and Ito, which is distinguishable with every colour vision.
[[nodiscard]] std::string_view colour_of(std::size_t series);
// Halfway to white.
[[nodiscard]] std::string pale(std::string_view colour);

// Draws the marker of a series. Each colour has its own shape.
void draw_marker(Svg& svg, Spot at, std::size_t series);

// The rectangle of one chart in a picture.
struct Area {
    double left = 0;
    double top = 0;
    double width = 0;
    double height = 0;
};

struct LegendEntry {
    std::string name;
    enum class Kind { line, marked_line, points, bar, pale_bar, level } kind = Kind::line;
    std::size_t series = 0;
};

// Calling order: construct; draw the contents; draw_levels() last.
class Frame {
  public:
    // Draws title and legend. The plot is the remaining area.
    Frame(Svg& svg, const Area& area, std::string_view title, const std::vector<LegendEntry>& legend);

    [[nodiscard]] const Area& plot() const { return plot_; }
    void draw_y_axis(const Axis& axis, const Scale& scale);
    void draw_x_axis(const Axis& axis, const Scale& scale);
    void draw_levels(std::span<const Level> levels, const Scale& y);

  private:
    void draw_legend(const Area& area, const std::vector<LegendEntry>& legend);

    Svg& svg_;
    Area plot_;
};

}  // namespace atp::figure
