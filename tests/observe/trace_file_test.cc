// SPDX-License-Identifier: Apache-2.0
#include "observe/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/fails.h"
#include "wire/control.h"

namespace atp::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const wire::Address peer = *wire::Address::parse("10.0.0.1:4791");

class TraceFiles : public ::testing::Test {
  protected:
    TraceFiles() {
        std::string name = (std::filesystem::temp_directory_path() / "atp-trace-XXXXXX").string();
        EXPECT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
    [[nodiscard]] std::vector<std::string> lines_of(const std::string& name) const {
        std::ifstream file(path(name));
        std::vector<std::string> lines;
        for (std::string line; std::getline(file, line);) lines.push_back(line);
        return lines;
    }
    [[nodiscard]] std::shared_ptr<Log> log() {
        return std::make_shared<Log>(
            LogConfig{.receiver = [this](Severity, std::string_view line) { logged_.emplace_back(line); }});
    }

    std::filesystem::path folder_;
    std::vector<std::string> logged_;
};

void send_leave(wire::TraceSink& sink, unsigned job = 7) {
    std::array<std::byte, 256> bytes{};
    const std::size_t size = wire::encode(wire::Leave{.job = job, .token = 0x5eed, .channel = 3}, bytes);
    sink.packet(Time(std::chrono::microseconds(1500)), "sent", std::span(bytes).first(size), &peer, false);
}

TEST_F(TraceFiles, PatternGivesEachProcessItsFile) {
    EXPECT_EQ(trace_path("dir/%r.trace", 12), "dir/12.trace");
    EXPECT_EQ(trace_path("%p", 0), std::to_string(getpid()));
    EXPECT_EQ(trace_path("100%%-%x%", 0), "100%-%x%");
    std::array<char, 256> host{};
    ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
    EXPECT_EQ(trace_path("%h", 0), host.data());
}

TEST_F(TraceFiles, PacketsAndTotalsAreInTheFileThatOnlyItsOwnerReads) {
    auto file = TraceFile::open({.path = path("a")}, log());
    ASSERT_TRUE(file) << to_string(file.error());
    send_leave((*file)->add_queue("10.0.0.2:4790"));
    const auto totals = (*file)->close();
    EXPECT_EQ(totals.written, 1U);
    EXPECT_EQ(totals.dropped, 0U);
    const auto lines = lines_of("a");
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_THAT(lines[0], HasSubstr(" begins at 20"));
    EXPECT_EQ(lines[1],
              "1500.000us 10.0.0.2:4790>10.0.0.1:4791 sent LEAVE job=00000007 token=0x5eed ch=3 unit=0 member=0");
    EXPECT_THAT(lines[2], HasSubstr("written=1 dropped=0"));
    for (const std::string& line : lines) EXPECT_TRUE(wire::parse_trace_line(line)) << line;
    EXPECT_THAT(logged_, ElementsAre("trace ended file=" + path("a") + " written=1 dropped=0"));
    struct stat state {};
    ASSERT_EQ(stat(path("a").c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 0777U, 0600U);
}

TEST_F(TraceFiles, FileThatWasThereBecomesPrivate) {
    std::ofstream(path("a")) << "old";
    ASSERT_EQ(chmod(path("a").c_str(), 0644), 0);
    ASSERT_TRUE(TraceFile::open({.path = path("a")}, nullptr));
    struct stat state {};
    ASSERT_EQ(stat(path("a").c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 0777U, 0600U);
}

TEST_F(TraceFiles, LinkIsNotFollowed) {
    ASSERT_EQ(symlink("elsewhere", path("a").c_str()), 0);
    EXPECT_FALSE(TraceFile::open({.path = path("a")}, nullptr));
    EXPECT_FALSE(std::filesystem::exists(path("elsewhere")));
}

TEST_F(TraceFiles, LaterStartReplacesTheFile) {
    for (int start = 0; start < 2; ++start) {
        auto file = TraceFile::open({.path = path("a")}, nullptr);
        ASSERT_TRUE(file);
        send_leave((*file)->add_queue("local"));
    }
    EXPECT_EQ(lines_of("a").size(), 3U);
}

TEST_F(TraceFiles, FullDiskIsAnErrorInTheLogAndCountsAsDropped) {
    auto file = TraceFile::open({.path = "/dev/full"}, log());
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_TRUE(TraceFile::open({.path = "/dev/full"}, nullptr)) << "a device has no lock";
    wire::TraceSink& sink = (*file)->add_queue("local");
    for (int packet = 0; packet < 10; ++packet) send_leave(sink);
    const auto totals = (*file)->close();
    EXPECT_EQ(totals.dropped, 10U);
    ASSERT_TRUE(totals.failure);
    EXPECT_THAT(to_string(*totals.failure), HasSubstr("No space left on device"));
    EXPECT_THAT(logged_, ElementsAre("trace failed file=/dev/full reason=\"No space left on device\"",
                                     "trace ended file=/dev/full written=0 dropped=10"));
}

// A limit of the process for the length of files, in bytes. A write reaches it as it reaches the end of a disk.
class FileLimit {
  public:
    explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~FileLimit() {
        setrlimit(RLIMIT_FSIZE, &before_);
        static_cast<void>(std::signal(SIGXFSZ, handler_));
    }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

  private:
    void (*handler_)(int);
    rlimit before_{};
};

TEST_F(TraceFiles, FileThatBecomesFullKeepsItsCompleteLinesAndCountsThem) {
    const FileLimit limit(1000);
    auto file = TraceFile::open({.path = path("a")}, log());
    ASSERT_TRUE(file) << to_string(file.error());
    wire::TraceSink& sink = (*file)->add_queue("local");
    constexpr std::uint64_t sent = 100;
    for (unsigned packet = 0; packet < sent; ++packet) send_leave(sink);
    const auto totals = (*file)->close();
    EXPECT_EQ(totals.written + totals.dropped, sent);
    const auto lines = lines_of("a");
    EXPECT_EQ(lines.size(), totals.written + 1);
    EXPECT_GT(lines.size(), 5U);
    for (const std::string& line : lines) EXPECT_TRUE(wire::parse_trace_line(line)) << line;
    EXPECT_THAT(lines.back(), HasSubstr(" unit=0 member=0"));
    ASSERT_EQ(logged_.size(), 2U);
    EXPECT_THAT(logged_[0], HasSubstr("reason=\"File too large\""));
}

TEST_F(TraceFiles, EventsBeyondTheQueueAreCountedInFileAndLog) {
    auto file = TraceFile::open({.path = path("a"), .queue_bytes = 256}, log());
    ASSERT_TRUE(file);
    wire::TraceSink& sink = (*file)->add_queue("local");
    constexpr unsigned sent = 20'000;
    for (unsigned packet = 0; packet < sent; ++packet) send_leave(sink, packet);
    const auto totals = (*file)->close();
    EXPECT_GT(totals.dropped, 0U);
    EXPECT_EQ(totals.written + totals.dropped, sent);
    EXPECT_EQ(lines_of("a").size(), totals.written + 2);
    EXPECT_THAT(lines_of("a").back(), HasSubstr("dropped=" + std::to_string(totals.dropped)));
}

TEST_F(TraceFiles, FileThatCannotBeCreatedIsNamed) {
    const auto file = TraceFile::open({.path = "/no/folder/a"}, nullptr);
    EXPECT_TRUE(fails(file, {.peer = "/no/folder/a", .text = HasSubstr("cannot be written")}));
}

TEST_F(TraceFiles, FileOfAnotherWriterIsRefusedWithTheRemedy) {
    auto first = TraceFile::open({.path = path("a")}, nullptr);
    ASSERT_TRUE(first);
    send_leave((*first)->add_queue("local"));
    const auto second = TraceFile::open({.path = path("a")}, nullptr);
    ASSERT_TRUE(fails(second, {.text = HasSubstr("%r")}));
    first->reset();
    EXPECT_EQ(lines_of("a").size(), 3U) << "the second attempt left it as it was";
}

TEST_F(TraceFiles, UsersOfOnePathShareTheFileAndLaterOnesAppend) {
    {
        auto first = TraceFile::shared({.path = path("a")}, nullptr);
        auto second = TraceFile::shared({.path = path("a")}, nullptr);
        ASSERT_TRUE(first && second);
        EXPECT_EQ(*first, *second);
        send_leave((*first)->add_queue("local"));
        send_leave((*second)->add_queue("local"));
    }
    EXPECT_EQ(lines_of("a").size(), 4U);
    auto third = TraceFile::shared({.path = path("a")}, nullptr);
    ASSERT_TRUE(third);
    third->reset();
    EXPECT_EQ(lines_of("a").size(), 6U);
}

}  // namespace
}  // namespace atp::observe
