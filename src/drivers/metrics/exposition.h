// SPDX-License-Identifier: Apache-2.0
// Metrics as text that Prometheus and other scrapers read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace atp::metrics {

enum class TextFormat : std::uint8_t { prometheus, openmetrics };

enum class Kind : std::uint8_t {
    counter,  // only grows while its program runs; samples end in _total
    gauge,
    info,  // always 1: the labels are what it says; samples end in _info
};

// All samples of one name. Without the suffix that its kind adds.
struct MetricFamily {
    std::string_view name;
    Kind kind = Kind::gauge;
    std::string_view help;
};

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// Collects samples in any order, because a scraper wants those of a family together. Families appear in the order of
// their first samples.
class Exposition {
  public:
    void add(const MetricFamily& family, const Labels& labels, double value);
    [[nodiscard]] std::string text(TextFormat format) const;

  private:
    struct Collected {
        std::string name;
        Kind kind;
        std::string help;
        std::string samples;  // the same in both formats
    };

    std::vector<Collected> families_;
    std::unordered_map<std::string, std::size_t> places_;  // of names in `families_`
};

// Whether a scraper whose header Accept this is asks for OpenMetrics.
[[nodiscard]] TextFormat format_for(std::string_view accept);
[[nodiscard]] std::string_view content_type(TextFormat format);

}  // namespace atp::metrics
