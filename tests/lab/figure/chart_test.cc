// SPDX-License-Identifier: Apache-2.0
#include "figure/chart.h"

#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "figure/svg.h"

namespace atp::figure {
namespace {

// The first error in the XML of a chart, empty if there is none. Detects unclosed elements, attributes without quotes
// and bare ampersands.
std::string problem_of_xml(const std::string& text) {
    static const std::regex entity("&(?!(amp|lt|gt|quot|apos);)");
    if (std::regex_search(text, entity)) return "a bare ampersand";
    static const std::regex tag(R"re(<(/?)([a-z]+)((?:\s+[a-zA-Z0-9:-]+="[^"<]*")*)\s*(/?)>)re");
    std::vector<std::string> open;
    std::string rest;
    for (std::sregex_iterator match(text.begin(), text.end(), tag), end; match != end; ++match) {
        const std::string name = (*match)[2];
        if ((*match)[1].length() != 0) {
            if (open.empty() || open.back() != name) return "</" + name + "> ends nothing";
            open.pop_back();
        } else if ((*match)[4].length() == 0) {
            open.push_back(name);
        }
    }
    rest = std::regex_replace(text, tag, "");
    if (rest.find_first_of("<>") != std::string::npos) return "a bracket outside tags";
    return open.empty() ? "" : "<" + open.back() + "> does not end";
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

LineChart line_chart() {
    return {.title = "a < b & \"c\"",
            .x = {.label = "jobs"},
            .y = {.label = "Gbit/s", .from = 0},
            .lines = {{.name = "ATP's", .x = {1, 2, 4}, .y = {44, 43, 42}},
                      {.name = "linear", .x = {1, 2, 4}, .y = {44, 30, 9}}},
            .levels = {{.name = "paper", .value = 60}}};
}

TEST(XmlEscape, SpecialCharactersAreEscapedAndControlsRemoved) {
    EXPECT_EQ(escaped("a<b>&\"'\x01z\xc3\xa4"), "a&lt;b&gt;&amp;&quot;&apos;z\xc3\xa4");
}

TEST(Chart, SvgIsWellFormed) {
    const std::vector<Chart> charts{
        line_chart(),
        BarChart{.title = "bars",
                 .y = {.label = "samples a second"},
                 .categories = {"VGG16", "ResNet50"},
                 .bars = {{.name = "ATP", .values = {147, 230}},
                          {.name = "ring", .values = {120, std::numeric_limits<double>::quiet_NaN()}}}},
        LineChart{.title = "empty"}};
    for (std::size_t count = 0; count <= charts.size(); ++count) {
        const std::string svg = to_svg("Three <charts>", std::span(charts).first(count));
        EXPECT_EQ(problem_of_xml(svg), "") << svg;
        EXPECT_EQ(svg.find("nan"), std::string::npos);
    }
    EXPECT_NE(problem_of_xml("<svg><text>a & b</text></svg>"), "");
    EXPECT_NE(problem_of_xml("<svg><text>a</svg>"), "");
    EXPECT_NE(problem_of_xml("<svg>a < b</svg>"), "");
}

TEST(Chart, SvgHasTitleLabelsLegendAndTicks) {
    const std::string svg = to_svg("Shown above", std::vector<Chart>{line_chart()});
    for (const char* text : {">Shown above<", ">a &lt; b &amp; &quot;c&quot;<", ">jobs<", ">Gbit/s<", ">ATP&apos;s<",
                             ">linear<", ">paper<", ">60<", ">0<"}) {
        EXPECT_NE(svg.find(text), std::string::npos) << text;
    }
}

TEST(Chart, FewPointsHaveMarkersAndManyHaveNone) {
    LineChart chart = line_chart();
    chart.lines.resize(1);
    chart.levels.clear();
    // Three, and one in the legend.
    EXPECT_EQ(count_of(to_svg("", std::vector<Chart>{chart}), "<circle"), 4U);
    for (unsigned i = 0; i < 100; ++i) {
        chart.lines[0].x.push_back(5.0 + i);
        chart.lines[0].y.push_back(i);
    }
    EXPECT_EQ(count_of(to_svg("", std::vector<Chart>{chart}), "<circle"), 0U);
}

TEST(Chart, NumberOfABarIsDrawnOverCrossingLines) {
    const BarChart chart{.title = "",
                         .categories = {"a"},
                         .bars = {{.name = "n", .values = {19.5}}},
                         .levels = {{.name = "paper", .value = 20}}};
    const std::string svg = to_svg("", std::vector<Chart>{chart});
    const std::size_t number = svg.find(">19.5<");
    ASSERT_NE(number, std::string::npos);
    EXPECT_LT(svg.rfind("stroke-dasharray"), number);
    EXPECT_GT(svg.rfind("paint-order"), svg.rfind("stroke-dasharray"));
}

TEST(Chart, HeightOfABarIsProportionalToItsValue) {
    const BarChart chart{.title = "", .categories = {"a", "b"}, .bars = {{.name = "n", .values = {10, 20}}}};
    const std::string svg = to_svg("", std::vector<Chart>{chart});
    static const std::regex bar(R"re(height="([0-9.]+)" fill="#0072b2")re");
    std::vector<double> heights;
    for (std::sregex_iterator match(svg.begin(), svg.end(), bar), end; match != end; ++match) {
        heights.push_back(std::stod((*match)[1]));
    }
    ASSERT_EQ(heights.size(), 3U);  // the first is the legend's
    EXPECT_NEAR(heights[2] / heights[1], 2, 0.01);
}

}  // namespace
}  // namespace atp::figure
