// SPDX-License-Identifier: Apache-2.0
#include "observe/log_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace atp::observe {
namespace {

const std::vector<LogField> fields{job_field(7),
                                   {"channel", std::uint16_t{3}},
                                   {"address", *wire::Address::parse("[fe80::1]:4790")},
                                   {"reason", "no room: \"64\" jobs\n\x1b[31mred"},
                                   {"text", ""}};

TEST(LogText, LineHasSeverityWordsAndFieldsInOrder) {
    EXPECT_EQ(text_line(row_of(LogEvent::job_refused), fields),
              "warn job refused job=00000007 channel=3 address=[fe80::1]:4790 "
              R"(reason="no room: \"64\" jobs\n\u001b[31mred" text="")");
}

TEST(LogText, JsonKeepsNumbersAndEscapesTexts) {
    EXPECT_EQ(json_members(row_of(LogEvent::job_refused), fields),
              R"("level":"warn","event":"job refused","job":"00000007","channel":3,"address":"[fe80::1]:4790",)"
              R"("reason":"no room: \"64\" jobs\n\u001b[31mred","text":"")");
}

TEST(LogText, BytesThatAreNoUtf8ArePrintable) {
    const std::vector<LogField> foreign{{"reason", "\xff\xfe x"}};
    const auto json = nlohmann::json::parse("{" + json_members(row_of(LogEvent::job_failed), foreign) + "}");
    EXPECT_EQ(json["reason"], "\uFFFD\uFFFD x");
    for (const char letter : text_line(row_of(LogEvent::job_failed), foreign))
        EXPECT_TRUE(letter >= ' ' && letter < 127);
}

TEST(LogText, KeysAreThoseOfALineOfASwitchOrOfARank) {
    const EventRow row{"job failed", Severity::warn, {"job address? reason", "rank reason"}};
    const LogField job = job_field(7), address{"address", "a"}, reason{"reason", "x"}, rank{"rank", 0};
    for (const auto& defined :
         std::vector<std::vector<LogField>>{{job, address, reason}, {job, reason}, {rank, reason}})
        EXPECT_TRUE(has_defined_keys(row, defined));
    for (const auto& other : std::vector<std::vector<LogField>>{
             {}, {job}, {reason, job}, {job, reason, address}, {job, rank, reason}, {job, job, reason}})
        EXPECT_FALSE(has_defined_keys(row, other));
    EXPECT_FALSE(has_defined_keys({"rank slow", Severity::warn, {"", "rank reason"}}, {}));
}

TEST(LogText, MissingFeatureIsDividedAtTheFirstColon) {
    EXPECT_EQ(missing_feature("gso: EIO: from eth1").name, "gso");
    EXPECT_EQ(missing_feature("gso: EIO: from eth1").reason, "EIO: from eth1");
    EXPECT_EQ(missing_feature("gso").name, "gso");
    EXPECT_EQ(missing_feature("gso").reason, "");
}

TEST(LogText, FormatsReadAsThemselves) {
    EXPECT_EQ(log_format_of("json"), LogFormat::json);
    EXPECT_EQ(log_format_of("text"), LogFormat::text);
    EXPECT_FALSE(log_format_of("xml"));
}

}  // namespace
}  // namespace atp::observe
