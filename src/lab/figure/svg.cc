// SPDX-License-Identifier: Apache-2.0
#include "figure/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace atp::figure {
namespace {

constexpr std::string_view fonts = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";
// Width of a letter relative to its size, for the fonts above.
constexpr double letter_width = 0.54;

std::string attributes_of(const Stroke& stroke) {
    const std::string dashes = stroke.dashes.empty() ? "" : fmt::format(R"( stroke-dasharray="{}")", stroke.dashes);
    return fmt::format(R"(fill="none" stroke="{}" stroke-width="{:g}"{})", stroke.colour, stroke.width, dashes);
}

std::string points_of(std::span<const Spot> spots) {
    std::string points;
    for (const Spot& spot : spots) points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", spot.x, spot.y);
    return points;
}

std::string_view name_of(Anchor anchor) {
    switch (anchor) {
        case Anchor::start: return "start";
        case Anchor::middle: return "middle";
        case Anchor::end: return "end";
    }
    return "start";
}

bool belongs_into_xml(char c) { return static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n'; }

}  // namespace

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&apos;"; break;
            default:
                if (belongs_into_xml(c)) out += c;
        }
    }
    return out;
}

Svg::Svg(double width, double height)
    : text_(fmt::format(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" )"
                        R"(viewBox="0 0 {0:.0f} {1:.0f}" font-family="{2}">)"
                        "\n",
                        width, height, fonts)) {
    rectangle({}, width, height, "#ffffff");
}

void Svg::rectangle(Spot corner, double width, double height, std::string_view fill) {
    text_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>)"
                         "\n",
                         corner.x, corner.y, width, height, fill);
}

void Svg::line(Spot from, Spot to, const Stroke& stroke) {
    text_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" {}/>)"
                         "\n",
                         from.x, from.y, to.x, to.y, attributes_of(stroke));
}

void Svg::polyline(std::span<const Spot> spots, const Stroke& stroke) {
    text_ += fmt::format(R"(<polyline points="{}" {} stroke-linejoin="round"/>)"
                         "\n",
                         points_of(spots), attributes_of(stroke));
}

void Svg::polygon(std::span<const Spot> spots, std::string_view fill) {
    text_ += fmt::format(R"(<polygon points="{}" fill="{}"/>)"
                         "\n",
                         points_of(spots), fill);
}

void Svg::circle(Spot center, double radius, std::string_view fill) {
    text_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:g}" fill="{}"/>)"
                         "\n",
                         center.x, center.y, radius, fill);
}

void Svg::text(Spot at, std::string_view words, const TextStyle& style) {
    const std::string turn =
        style.upwards ? fmt::format(R"x( transform="rotate(-90 {:.1f} {:.1f})")x", at.x, at.y) : "";
    text_ += fmt::format(
        R"(<text x="{:.1f}" y="{:.1f}" font-size="{:g}" text-anchor="{}" fill="{}"{}{}{}>{}</text>)"
        "\n",
        at.x, at.y, style.size, name_of(style.anchor), style.colour, style.bold ? R"( font-weight="bold")" : "",
        style.halo ? R"( stroke="#ffffff" stroke-width="3" paint-order="stroke")" : "", turn, escaped(words));
}

std::string Svg::finish() && {
    text_ += "</svg>\n";
    return std::move(text_);
}

double width_of(std::string_view text, double size) {
    // Continuation bytes of UTF-8 have no width.
    const auto characters =
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; });
    return static_cast<double>(characters) * size * letter_width;
}

}  // namespace atp::figure
