// SPDX-License-Identifier: Apache-2.0
// The SVG elements that charts use.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace atp::figure {

struct Spot {
    double x = 0;
    double y = 0;
};

// Escapes text for XML elements and attributes. Omits characters that XML does not allow.
[[nodiscard]] std::string escaped(std::string_view text);

enum class Anchor { start, middle, end };

struct TextStyle {
    double size = 12;
    Anchor anchor = Anchor::start;
    std::string_view colour = "#222222";
    bool bold = false;
    bool upwards = false;  // rotated by 90 degrees, read from bottom to top
    bool halo = false;     // white outline, legible over lines
};

struct Stroke {
    std::string_view colour = "#222222";
    double width = 1;
    std::string_view dashes{};  // lengths of dashes and gaps
};

// Calling order: add elements, each above the earlier ones; then finish(). Distances are in pixels from the top left
//   corner.
class Svg {
  public:
    Svg(double width, double height);

    void rectangle(Spot corner, double width, double height, std::string_view fill);
    void line(Spot from, Spot to, const Stroke& stroke);
    void polyline(std::span<const Spot> spots, const Stroke& stroke);
    void polygon(std::span<const Spot> spots, std::string_view fill);
    void circle(Spot center, double radius, std::string_view fill);
    void text(Spot at, std::string_view words, const TextStyle& style = {});
    [[nodiscard]] std::string finish() &&;

  private:
    std::string text_;
};

// Estimated width of a text; fonts differ between systems.
[[nodiscard]] double width_of(std::string_view text, double size);

}  // namespace atp::figure
