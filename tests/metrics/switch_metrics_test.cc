// SPDX-License-Identifier: Apache-2.0
#include "metrics/switch_metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sample_report.h"

namespace atp::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

std::string metrics_of(const std::optional<client::SwitchReport>& report) {
    Exposition exposition;
    add_switch("leaf", report, exposition);
    return exposition.text(TextFormat::prometheus);
}

// Each number of the object is a counter with these labels.
void expect_counters(const std::string& text, const Json& counters, std::string_view prefix, std::string_view labels) {
    for (const auto& [name, value] : counters.items()) {
        if (!value.is_number()) continue;
        EXPECT_THAT(text, HasSubstr(fmt::format("\natp_{}_{}_total{{switch=\"leaf\"{}}} {}\n", prefix, name, labels,
                                                value.get<std::uint64_t>())));
    }
}

TEST(SwitchMetrics, HaveEachCounterOfTheReport) {
    const std::string text = "\n" + metrics_of(client::sample_report());
    const Json report = Json::parse(client::to_json(client::sample_report()));
    Json thread = report.at("shards").at(0);
    expect_counters(text, thread.at("packets"), "switch", ",thread=\"0\"");
    expect_counters(text, thread.at("udp"), "udp", ",thread=\"0\"");
    expect_counters(text, thread.at("jobs").at(0).at("packets"), "job", ",thread=\"0\",job=\"00000007\"");
    expect_counters(text, thread.at("channels").at(0).at("server"), "server", ",job=\"00000007\",channel=\"1\"");
    thread.erase("aggregators");
    expect_counters(text, thread, "switch", ",thread=\"0\"");
    Json kernel = report.at("shards").at(1).at("kernel");
    for (const char* gauge : {"lanes", "level"}) kernel.erase(gauge);
    expect_counters(text, kernel, "kernel", ",thread=\"kernel\"");
    EXPECT_THAT(text, HasSubstr("atp_switch_refused_total{switch=\"leaf\",thread=\"0\",reason=\"truncated\"} 3\n"));
    EXPECT_THAT(text,
                HasSubstr("atp_port_marked_frames_total{switch=\"leaf\",thread=\"kernel\",interface=\"eth1\"} 12"));
}

TEST(SwitchMetrics, HaveStateAndIdentity) {
    const std::string text = metrics_of(client::sample_report());
    EXPECT_THAT(text, HasSubstr("atp_switch_up{switch=\"leaf\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("atp_switch_info{switch=\"leaf\",software=\"atp 1.2.3\",id=\"0000000000abcdef\","));
    EXPECT_THAT(text, HasSubstr("atp_switch_uptime_seconds{switch=\"leaf\"} 12.5\n"));
    EXPECT_THAT(text, HasSubstr("atp_switch_jobs{switch=\"leaf\"} 2\n"));
    EXPECT_THAT(text,
                HasSubstr("atp_job_info{switch=\"leaf\",job=\"00000007\",name=\"resnet-50\",tenant=\"vision\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("atp_tenant_jobs_limit{switch=\"leaf\",tenant=\"vision\"} 8\n"));
    EXPECT_THAT(text, HasSubstr("atp_channel_members{switch=\"leaf\",job=\"00000008\",channel=\"0\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("atp_channel_slowest_waited_ratio{switch=\"leaf\",job=\"00000007\",channel=\"1\","
                                "rank=\"3\"} 0.412\n"));
    EXPECT_THAT(text, HasSubstr("atp_tenant_aggregators_held{switch=\"leaf\",thread=\"0\",tenant=\"vision\"} 300\n"));
}

TEST(SwitchMetrics, OfASwitchThatDoesNotAnswerSayOnlyThat) {
    const std::string text = metrics_of(std::nullopt);
    EXPECT_THAT(text, HasSubstr("atp_switch_up{switch=\"leaf\"} 0\n"));
    EXPECT_THAT(text, Not(HasSubstr("uptime")));
}

}  // namespace
}  // namespace atp::metrics
