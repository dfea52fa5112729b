// SPDX-License-Identifier: Apache-2.0
#include "metrics/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "sample_report.h"

namespace atp::metrics {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

client::SwitchReport open_report() {
    client::SwitchReport report = client::sample_report();
    report.is_open = true;
    report.tenants.clear();
    return report;
}

SwitchSource answering(const std::string& name, const std::optional<client::SwitchReport>& report) {
    return {name, [report] { return report; }};
}

TEST(Exporter, ServesMetricsInTheFormatOfTheScraper) {
    Exporter exporter({answering("a", open_report()), answering("b", std::nullopt)});
    const HttpAnswer text = exporter.answer({.path = "/metrics"});
    EXPECT_EQ(text.status, 200);
    EXPECT_THAT(text.body, HasSubstr("atp_switch_up{switch=\"a\"} 1\natp_switch_up{switch=\"b\"} 0\n"));
    const HttpAnswer open = exporter.answer({.path = "/metrics", .accept = "application/openmetrics-text"});
    EXPECT_TRUE(open.body.ends_with("# EOF\n"));
    EXPECT_THAT(std::string(open.type), HasSubstr("openmetrics"));
}

TEST(Exporter, MetricsForSomebodyTrustedNeedNoKey) {
    Exporter exporter({answering("a", client::sample_report())}, "correct horse battery");
    EXPECT_EQ(exporter.answer({.path = "/metrics"}).status, 401);
    EXPECT_THAT(exporter.metrics(TextFormat::prometheus), HasSubstr("atp_switch_up{switch=\"a\"} 1\n"));
}

TEST(Exporter, ReportsAreThoseOfStats) {
    Exporter exporter({answering("a", open_report()), answering("b", std::nullopt)});
    const Json answer = Json::parse(exporter.answer({.path = "/reports"}).body);
    EXPECT_EQ(answer.at("switches").at(0).at("report"), Json::parse(client::to_json(open_report())));
    EXPECT_TRUE(answer.at("switches").at(1).at("report").is_null());
    EXPECT_EQ(answer.at("switches").at(1).at("name"), "b");
}

TEST(Exporter, IsHealthyWhileASwitchAnswers) {
    Exporter one({answering("a", std::nullopt), answering("b", open_report())});
    EXPECT_EQ(one.answer({.path = "/healthz"}).status, 200);
    Exporter none({answering("a", std::nullopt)});
    EXPECT_EQ(none.answer({.path = "/healthz"}).status, 503);
    EXPECT_EQ(none.answer({.path = "/else"}).status, 404);
}

TEST(Exporter, PageAsksNoOtherHost) {
    Exporter exporter({answering("a", open_report())});
    const HttpAnswer page = exporter.answer({.path = "/"});
    EXPECT_THAT(page.body, HasSubstr("<title>ATP switches</title>"));
    EXPECT_LE(page.body.size(), 60'000U);
    EXPECT_THAT(std::string(page.headers.at(0).second), HasSubstr("default-src 'none'"));
}

TEST(Exporter, RequestsWithinAMomentShareTheReports) {
    int asked = 0;
    Exporter exporter({{"a", [&]() -> std::optional<client::SwitchReport> {
                            ++asked;
                            return open_report();
                        }}});
    for (int i = 0; i < 3; ++i) (void)exporter.answer({.path = "/metrics"});
    EXPECT_LT(asked, 3);
}

TEST(Exporter, OfTenantsNothingIsShownWithoutAKey) {
    Exporter exporter({answering("a", client::sample_report())});
    for (const char* path : {"/", "/metrics", "/reports"}) {
        const HttpAnswer answer = exporter.answer({.path = path});
        EXPECT_EQ(answer.status, 403) << path;
        EXPECT_THAT(answer.body, HasSubstr("--http-key"));
    }
    EXPECT_EQ(exporter.answer({.path = "/healthz"}).status, 200);
}

TEST(Exporter, KeyIsABearersOrThePasswordOfAnyUser) {
    Exporter exporter({answering("a", client::sample_report())}, "correct horse battery");
    const auto status = [&](std::string_view authorization) {
        return exporter.answer({.path = "/metrics", .authorization = authorization}).status;
    };
    EXPECT_EQ(status("Bearer correct horse battery"), 200);
    EXPECT_EQ(status("bearer correct horse battery"), 200);
    EXPECT_EQ(status("Basic b3BlcmF0b3I6Y29ycmVjdCBob3JzZSBiYXR0ZXJ5"), 200);
    for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer correct horse batter", "Basic", "Basic !!!",
                              "Basic Y29ycmVjdCBob3JzZSBiYXR0ZXJ5", "correct horse battery"}) {
        EXPECT_EQ(status(wrong), 401) << wrong;
    }
}

}  // namespace
}  // namespace atp::metrics
