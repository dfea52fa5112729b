// SPDX-License-Identifier: Apache-2.0
// Logs and traces of `atp switch` and `atp bench` as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "client/switch_client.h"
#include "fabric.h"
#include "net/clock.h"
#include "program.h"
#include "wire/trace.h"

namespace atp::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class Observed : public testing::Test {
  protected:
    Observed() {
        std::string name = (std::filesystem::temp_directory_path() / "atp-observed-XXXXXX").string();
        EXPECT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
    // A switch that answers.
    [[nodiscard]] std::unique_ptr<Program> start_switch(std::vector<std::string> flags) {
        flags.insert(flags.begin(), {"switch", "--listen", address_, "--lanes", "64", "--memory", "1MB"});
        auto program = std::make_unique<Program>(flags);
        const auto client = client::SwitchClient::open(*wire::Address::parse(address_));
        EXPECT_TRUE(client);
        EXPECT_TRUE(
            eventually([&] { return (*client)->hello(net::now() + std::chrono::milliseconds(200)).has_value(); }));
        return program;
    }
    [[nodiscard]] std::vector<std::string> sums(std::vector<std::string> flags = {}) const {
        flags.insert(flags.begin(), {"bench", "--network", "--workers", "2", "--switch", address_, "--lanes", "64",
                                     "--bytes", "16kB", "--rounds", "2", "--warmup", "0"});
        return flags;
    }

    std::string address_ = free_port();
    std::filesystem::path folder_;
};

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

// The first line that contains the text; empty: none.
std::string line_with(const std::string& output, std::string_view text) {
    for (const std::string& line : lines_of(output)) {
        if (line.find(text) != std::string::npos) return line;
    }
    return {};
}

TEST_F(Observed, SwitchLogsSettingsJobsAndTotals) {
    const auto node = start_switch({});
    Program job(sums());
    ASSERT_EQ(job.status(), 0) << job.output();
    node->signal(SIGINT);
    EXPECT_EQ(node->status(), 0);
    const std::string& output = node->output();
    EXPECT_THAT(line_with(output, " switch started "),
                MatchesRegex("20.*Z info switch started address=" + address_ +
                             " parent=none threads=1 memory_bytes=1000000 aggregators=.* lanes=64 jobs=64 .*hold_ms=.* "
                             "tenants=\"open: no tenants\" log_level=info log_format=text trace=none version=.*"));
    EXPECT_THAT(line_with(output, " job formed "), HasSubstr(" info job formed job="));
    EXPECT_THAT(line_with(output, " job ready "), HasSubstr(" members=2"));
    EXPECT_NE(line_with(output, " job left "), "");
    EXPECT_EQ(line_with(output, " member joined "), "") << "its severity is debug";
    const std::string stopped = line_with(output, " switch stopped ");
    EXPECT_THAT(stopped, HasSubstr(" members_left=2 members_expired=0"));
    EXPECT_THAT(stopped, Not(HasSubstr(" completed=0 ")));
    EXPECT_THAT(output, HasSubstr("atp switch at " + address_ + "\n")) << "standard output is as before";
}

TEST_F(Observed, SwitchLogsJsonObjects) {
    const auto node = start_switch({"--log-format", "json", "--log-level", "debug"});
    Program job(sums());
    ASSERT_EQ(job.status(), 0) << job.output();
    node->signal(SIGTERM);
    EXPECT_EQ(node->status(), 0);
    std::set<std::string> events;
    for (const std::string& line : lines_of(node->output())) {
        if (!line.starts_with("{\"time\":")) continue;
        const auto object = nlohmann::json::parse(line, nullptr, false);
        ASSERT_TRUE(object.is_object()) << line;
        events.insert(object["event"]);
        if (object["event"] == "job ready") {
            EXPECT_EQ(object["members"], 2);
        }
    }
    for (const char* event :
         {"switch started", "job formed", "member joined", "job ready", "member left", "job left", "switch stopped"}) {
        EXPECT_TRUE(events.contains(event)) << event << '\n' << node->output();
    }
}

TEST_F(Observed, SwitchLogsAndTracesOneJobNumber) {
    const auto node = start_switch({"--trace", path("switch")});
    Program job(sums());
    ASSERT_EQ(job.status(), 0) << job.output();
    node->signal(SIGINT);
    EXPECT_EQ(node->status(), 0);
    const std::string line = line_with(node->output(), " job ready ");
    ASSERT_THAT(line, MatchesRegex(".* job=[0-9a-f]{8} .*"));
    const std::string number = line.substr(line.find(" job="), std::string_view(" job=650de528").size());
    std::ifstream trace(path("switch"));
    const std::string text{std::istreambuf_iterator<char>(trace), {}};
    for (const char* type : {"JOIN", "GRADIENT", "LEAVE"}) EXPECT_THAT(text, HasSubstr(type + number + ' '));
}

TEST_F(Observed, QuietSwitchLogsErrorsOnly) {
    const auto node = start_switch({"--quiet"});
    node->signal(SIGINT);
    EXPECT_EQ(node->status(), 0);
    EXPECT_EQ(node->output(), "");
}

TEST_F(Observed, UnknownLevelIsRefusedWithTheLevels) {
    Program program({"switch", "--log-level", "loud"});
    EXPECT_EQ(program.status(), 2);
    EXPECT_THAT(program.output(), HasSubstr("use trace, debug, info, warn, error or off"));
}

using Seqs = std::set<std::uint64_t>;

Seqs seqs_in(const std::string& path, const wire::TraceFilter& filter) {
    std::ifstream file(path);
    Seqs seqs;
    for (std::string text; std::getline(file, text);) {
        const auto line = wire::parse_trace_line(text);
        EXPECT_TRUE(line) << path << ": " << text;
        if (line && filter.accepts(*line) && line->number("seq")) seqs.insert(*line->number("seq"));
    }
    return seqs;
}

// 16 kB are 63 fragments of 64 lanes. Each of the rounds and each barrier has further ones.
TEST_F(Observed, TraceOfSwitchAndRanksHasEachFragmentsGradientCompletionAndAck) {
    const auto node = start_switch({"--trace", path("switch.trace")});
    Program job(sums({"--trace", path("%r.trace")}));
    ASSERT_EQ(job.status(), 0) << job.output();
    node->signal(SIGINT);
    ASSERT_EQ(node->status(), 0);
    EXPECT_THAT(line_with(node->output(), " trace ended "), HasSubstr(" dropped=0"));

    const std::string of_switch = path("switch.trace");
    const Seqs completed = seqs_in(of_switch, {.type = "GRADIENT", .what = "completed"});
    const Seqs received = seqs_in(of_switch, {.type = "GRADIENT", .what = "received"});
    EXPECT_GT(received.size(), 2U * 63);
    EXPECT_EQ(*received.rbegin() + 1, received.size()) << "each fragment from 0 is there";
    EXPECT_GT(completed.size(), received.size() / 2) << "the server adds those whose aggregators are in use";
    EXPECT_TRUE(std::ranges::includes(received, completed));
    EXPECT_EQ(seqs_in(of_switch, {.type = "ACK", .what = "sent"}), received);
    for (const char* rank : {"0.trace", "1.trace"}) {
        EXPECT_EQ(seqs_in(path(rank), {.type = "GRADIENT", .what = "sent"}), received) << rank;
        EXPECT_EQ(seqs_in(path(rank), {.type = "ACK", .what = "received"}), received) << rank;
    }
}

TEST_F(Observed, RanksTakeTheTraceFromTheEnvironment) {
    const auto node = start_switch({});
    ASSERT_EQ(setenv("ATP_TRACE", path("rank-%r").c_str(), 1), 0);
    Program job(sums());
    EXPECT_EQ(job.status(), 0) << job.output();
    ASSERT_EQ(unsetenv("ATP_TRACE"), 0);
    for (const char* rank : {"rank-0", "rank-1"}) {
        EXPECT_FALSE(seqs_in(path(rank), {.type = "ACK", .what = "received"}).empty()) << rank;
    }
}

TEST_F(Observed, FileThatTwoRanksNameIsRefusedWithTheRemedy) {
    const auto node = start_switch({});
    Program job(sums({"--trace", path("one")}));
    EXPECT_EQ(job.status(), 1);
    EXPECT_THAT(job.output(), HasSubstr("give each process its own file"));
}

TEST_F(Observed, FullDiskIsAnErrorInTheLogAndTheJobGoesOn) {
    const auto node = start_switch({"--trace", "/dev/full"});
    Program job(sums());
    EXPECT_EQ(job.status(), 0) << job.output();
    node->signal(SIGINT);
    EXPECT_EQ(node->status(), 1) << "its trace is lost";
    EXPECT_THAT(line_with(node->output(), " trace failed "),
                HasSubstr(" error trace failed file=/dev/full reason=\"No space left on device\""));
    EXPECT_THAT(line_with(node->output(), " trace ended "), Not(HasSubstr("dropped=0")));
}

TEST_F(Observed, TraceThatCannotBeCreatedStopsTheSwitchWithTheReason) {
    Program program({"switch", "--listen", address_, "--trace", "/no/folder/trace"});
    EXPECT_EQ(program.status(), 2);
    EXPECT_THAT(program.output(), HasSubstr("/no/folder/trace"));
    EXPECT_THAT(program.output(), HasSubstr("No such file"));
}

TEST_F(Observed, FailedRankLogsTheReasonAtWarn) {
    const auto node = start_switch({});
    Program alone({"bench", "--network", "--rank", "0", "--world", "2", "--rendezvous", free_port(), "--switch",
                   address_, "--timeout", "500ms"});
    EXPECT_EQ(alone.status(), 1);
    EXPECT_THAT(line_with(alone.output(), " job failed "), MatchesRegex("20.*Z warn job failed rank=0 reason=.*"));
}

}  // namespace
}  // namespace atp::test
