// SPDX-License-Identifier: Apache-2.0
#include "metrics/exposition.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace atp::metrics {
namespace {

constexpr std::array<std::string_view, 3> suffixes{"_total", "", "_info"};                // by Kind
constexpr std::array<std::string_view, 3> openmetrics_types{"counter", "gauge", "info"};  // by Kind
constexpr std::array<std::string_view, 3> prometheus_types{"counter", "gauge", "gauge"};  // by Kind

template <class Value, std::size_t count>
Value of(const std::array<Value, count>& values, Kind kind) {
    return values[static_cast<std::size_t>(kind)];
}

// Both formats take these escapes in a label's value. In a help, Prometheus' own takes no quote, so helps have none.
std::string escaped(std::string_view text) {
    std::string escaped;
    for (const char character : text) {
        if (character == '\n') {
            escaped += "\\n";
            continue;
        }
        if (character == '\\' || character == '"') escaped += '\\';
        escaped += character;
    }
    return escaped;
}

}  // namespace

void Exposition::add(const MetricFamily& family, const Labels& labels, double value) {
    const auto [place, is_new] = places_.try_emplace(std::string(family.name), families_.size());
    if (is_new) {
        families_.push_back({std::string(family.name), family.kind, std::string(family.help), {}});
    }
    std::string& samples = families_[place->second].samples;
    const auto out = std::back_inserter(samples);
    fmt::format_to(out, "{}{}", family.name, of(suffixes, family.kind));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        fmt::format_to(out, R"({}{}="{}")", i == 0 ? '{' : ',', labels[i].first, escaped(labels[i].second));
    }
    fmt::format_to(out, "{} {}\n", labels.empty() ? "" : "}", value);
}

std::string Exposition::text(TextFormat format) const {
    const bool open = format == TextFormat::openmetrics;
    std::string text;
    const auto out = std::back_inserter(text);
    for (const Collected& family : families_) {
        // A family of OpenMetrics has no suffix, one of Prometheus has that of its samples.
        const std::string name = fmt::format("{}{}", family.name, open ? "" : of(suffixes, family.kind));
        fmt::format_to(out, "# HELP {} {}\n# TYPE {} {}\n", name, family.help, name,
                       of(open ? openmetrics_types : prometheus_types, family.kind));
        text += family.samples;
    }
    if (open) text += "# EOF\n";
    return text;
}

TextFormat format_for(std::string_view accept) {
    return accept.find("application/openmetrics-text") == std::string_view::npos ? TextFormat::prometheus
                                                                                 : TextFormat::openmetrics;
}

std::string_view content_type(TextFormat format) {
    if (format == TextFormat::openmetrics) {
        // errors.md, none: no error
        return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    }
    // errors.md, none: no error
    return "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace atp::metrics
