// SPDX-License-Identifier: Apache-2.0
#include "metrics/exposition.h"

#include <gtest/gtest.h>

namespace atp::metrics {
namespace {

Exposition sample() {
    Exposition exposition;
    const MetricFamily sums{"atp_sums", Kind::counter, "Sums"};
    exposition.add(sums, {{"switch", "a"}}, 3);
    exposition.add({"atp_up", Kind::gauge, "1 if it answers"}, {}, 1);
    exposition.add(sums, {{"switch", "b"}, {"thread", "0"}}, 4294967296.0);
    exposition.add({"atp_switch", Kind::info, "The switch"}, {{"software", "a\\b\"c\nd"}}, 1);
    return exposition;
}

TEST(Exposition, FamiliesOfPrometheusHaveTheNamesOfTheirSamples) {
    EXPECT_EQ(sample().text(TextFormat::prometheus),
              "# HELP atp_sums_total Sums\n"
              "# TYPE atp_sums_total counter\n"
              "atp_sums_total{switch=\"a\"} 3\n"
              "atp_sums_total{switch=\"b\",thread=\"0\"} 4294967296\n"
              "# HELP atp_up 1 if it answers\n"
              "# TYPE atp_up gauge\n"
              "atp_up 1\n"
              "# HELP atp_switch_info The switch\n"
              "# TYPE atp_switch_info gauge\n"
              "atp_switch_info{software=\"a\\\\b\\\"c\\nd\"} 1\n");
}

TEST(Exposition, FamiliesOfOpenMetricsHaveNoSuffixes) {
    const std::string text = sample().text(TextFormat::openmetrics);
    EXPECT_NE(text.find("# TYPE atp_sums counter\natp_sums_total{switch=\"a\"} 3\n"), std::string::npos) << text;
    EXPECT_NE(text.find("# TYPE atp_switch info\natp_switch_info{"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("\n# EOF\n")) << text;
}

TEST(Exposition, ScraperChoosesTheFormat) {
    EXPECT_EQ(format_for("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"), TextFormat::openmetrics);
    EXPECT_EQ(format_for("text/plain;version=0.0.4"), TextFormat::prometheus);
    EXPECT_EQ(format_for(""), TextFormat::prometheus);
}

}  // namespace
}  // namespace atp::metrics
