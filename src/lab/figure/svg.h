// SPDX-License-Identifier: Apache-2.0
// The few elements of SVG that charts are made of.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace atp::figure {

struct Spot {
    double x = 0;
    double y = 0;
};

// For text and attributes of XML; characters that XML has no place for are left out.
[[nodiscard]] std::string escaped(std::string_view text);

enum class Anchor { start, middle, end };

struct TextStyle {
    double size = 12;
    Anchor anchor = Anchor::start;
    std::string_view colour = "#222222";
    bool bold = false;
    bool upwards = false;  // turned by a quarter, to be read from below
    bool halo = false;     // legible over lines
};

struct Stroke {
    std::string_view colour = "#222222";
    double width = 1;
    std::string_view dashes{};  // lengths of strokes and gaps
};

// Calling order: elements, each over those before it; then finish(). Distances are in pixels from the top left.
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

// How wide a text is, about: fonts differ from reader to reader.
[[nodiscard]] double width_of(std::string_view text, double size);

}  // namespace atp::figure
