// SPDX-License-Identifier: Apache-2.0
#include "observe/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace atp::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

struct Lines {
    [[nodiscard]] LogConfig config(Severity level = Severity::info) {
        return {.level = level,
                .limit = {.most = 2, .period = std::chrono::hours(1)},
                .receiver = [this](Severity, std::string_view line) { all.emplace_back(line); }};
    }
    std::vector<std::string> all;
};

std::vector<std::string> lines_on_stderr(const LogConfig& config, const std::function<void(Log&)>& body) {
    testing::internal::CaptureStderr();
    {
        Log log(config);
        body(log);
    }
    std::istringstream text(testing::internal::GetCapturedStderr());
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
}

std::vector<LogField> left(std::uint32_t job) { return {job_field(job), {"rank", 0}}; }

std::vector<LogField> joined(std::uint32_t job) {
    return {job_field(job), {"channel", 0}, {"rank", 0}, {"address", "10.0.0.1:1"}};
}

constexpr const char* time_pattern = "20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:]+\\.[0-9][0-9][0-9]Z";

TEST(Log, TextLineOnStderrHasTimeSeverityWordsAndFields) {
    const auto lines = lines_on_stderr({}, [](Log& log) {
        log.write(LogEvent::job_left, {job_field(7), {"channel", 0}});
        log.write(LogEvent::member_joined, joined(7));
        log.write(LogEvent::switch_failed, {{"reason", "two words"}});
    });
    const std::string time(time_pattern);
    EXPECT_THAT(lines, ElementsAre(MatchesRegex(time + " info job left job=00000007 channel=0"),
                                   MatchesRegex(time + " error switch failed reason=\"two words\"")));
}

TEST(Log, JsonLineOnStderrIsOneObjectWithTime) {
    const auto lines = lines_on_stderr({.format = LogFormat::json}, [](Log& log) {
        log.write(LogEvent::job_failed, {job_field(7), {"rank", 1}, {"reason", "100% \"sure\" {}"}});
    });
    ASSERT_EQ(lines.size(), 1U);
    const auto line = nlohmann::ordered_json::parse(lines[0]);
    EXPECT_THAT(line["time"].get<std::string>(), MatchesRegex(time_pattern));
    EXPECT_EQ(line["level"], "warn");
    EXPECT_EQ(line["event"], "job failed");
    EXPECT_EQ(line["job"], "00000007");
    EXPECT_EQ(line["reason"], "100% \"sure\" {}");
    EXPECT_EQ(line["rank"], 1);
    EXPECT_EQ(line.size(), 6U);
}

// Standard error is a full pipe without a reader.
class BlockedStderr {
  public:
    BlockedStderr() : before_(dup(STDERR_FILENO)) {
        std::array<int, 2> ends{};
        EXPECT_EQ(pipe2(ends.data(), O_NONBLOCK), 0);
        reader_ = ends[0];
        const std::vector<char> bytes(4096);
        while (write(ends[1], bytes.data(), bytes.size()) > 0) {
        }
        EXPECT_EQ(fcntl(ends[1], F_SETFL, 0), 0) << "a write blocks";
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
    }
    ~BlockedStderr() {
        dup2(before_, STDERR_FILENO);
        close(before_);
        close(reader_);
    }
    BlockedStderr(const BlockedStderr&) = delete;
    BlockedStderr& operator=(const BlockedStderr&) = delete;

  private:
    int before_;
    int reader_ = -1;
};

TEST(Log, BlockedStderrKeepsTheLogFromNeitherWritingNorEnding) {
    const BlockedStderr blocked;
    Log log({.limit = {.most = 10'000, .period = std::chrono::hours(1)}, .queued_lines = 4096});
    for (std::uint32_t job = 0; job < 5000; ++job) log.write(LogEvent::job_left, left(job));
}

TEST(Log, LevelOffWritesNothing) {
    EXPECT_THAT(lines_on_stderr({.level = Severity::off},
                                [](Log& log) {
                                    log.write(LogEvent::switch_failed, {{"reason", "x"}});
                                }),
                ElementsAre());
}

TEST(Log, SuppressedLinesOfAKindAreCountedAtTheEnd) {
    Lines lines;
    {
        Log log(lines.config());
        for (std::uint32_t job = 0; job < 5; ++job) log.write(LogEvent::job_left, left(job));
        log.write(LogEvent::switch_failed, {{"reason", "x"}});
    }
    EXPECT_THAT(lines.all, ElementsAre("job left job=00000000 rank=0", "job left job=00000001 rank=0",
                                       "switch failed reason=x", "log suppressed event=\"job left\" count=3"));
}

TEST(Log, PollReportsSuppressedLinesAfterTheirPeriod) {
    Lines lines;
    LogConfig config = lines.config();
    config.limit = {.most = 1, .period = Duration(0)};
    Log log(config);
    log.write(LogEvent::job_left, left(7));
    log.poll();
    EXPECT_THAT(lines.all, ElementsAre("job left job=00000007 rank=0"));
    config.limit.period = std::chrono::hours(1);
    Log limited(config);
    for (std::uint32_t job = 0; job < 3; ++job) limited.write(LogEvent::job_left, left(job));
    limited.poll();
    EXPECT_EQ(lines.all.size(), 2U) << "the period is not over";
}

TEST(Log, LineBelowTheLevelCountsAsNothing) {
    Lines lines;
    {
        Log log(lines.config(Severity::error));
        for (std::uint32_t job = 0; job < 9; ++job) log.write(LogEvent::job_left, left(job));
    }
    EXPECT_THAT(lines.all, ElementsAre());
}

}  // namespace
}  // namespace atp::observe
