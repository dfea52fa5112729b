// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/trace_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/flags.h"
#include "wire/job_text.h"
#include "wire/trace.h"

namespace atp::apps {
namespace {

struct TraceOptions {
    std::vector<std::string> files;
    wire::TraceFilter filter;
};

struct TimedLine {
    double time_us = 0;
    std::string text;
};

// Appends the accepted lines. Returns how many lines are none of a trace; nullopt: the file cannot be read.
std::optional<std::size_t> read_trace(const std::string& path, const wire::TraceFilter& filter,
                                      std::vector<TimedLine>& lines) {
    std::ifstream file(path);
    if (!file) return std::nullopt;
    std::size_t foreign = 0;
    for (std::string text; std::getline(file, text);) {
        const auto line = wire::parse_trace_line(text);
        if (!line) {
            ++foreign;
        } else if (filter.accepts(*line)) {
            lines.push_back({.time_us = line->time_us, .text = std::move(text)});
        }
    }
    if (file.bad()) return std::nullopt;
    return foreign;
}

int run_trace(const TraceOptions& options) {
    std::vector<TimedLine> lines;
    std::size_t foreign = 0;
    for (const std::string& path : options.files) {
        const auto count = read_trace(path, options.filter, lines);
        if (!count) {
            fmt::print(stderr, "atp trace: cannot read {}: check the path and the owner of the file\n", path);
            return exit_misused;
        }
        foreign += *count;
    }
    std::ranges::stable_sort(lines, {}, &TimedLine::time_us);
    for (const TimedLine& line : lines) fmt::print("{}\n", line.text);
    if (foreign == 0) return exit_passed;
    fmt::print(stderr, "atp trace: {} lines are none of a trace: give files that --trace or ATP_TRACE wrote\n",
               foreign);
    return exit_failed;
}

}  // namespace

std::function<int()> register_trace(CLI::App& program) {
    auto options = std::make_shared<TraceOptions>();
    CLI::App* command =
        program.add_subcommand("trace", "Show traces of switches, ranks and simulations, merged by time");
    command->add_option("files", options->files, "Files that --trace or ATP_TRACE wrote, of one host or one simulation")
        ->type_name("FILE")
        ->required();
    Flags flags(*command, "Filter");
    constexpr std::uint64_t most = UINT32_MAX;
    const auto number = [](std::string_view text) { return parse_whole(text, 0, most); };
    const std::string numbers = whole_forms(0, most);
    wire::TraceFilter& filter = options->filter;
    flags.parsed("--job", filter.job, "JOB", wire::parse_job, "eight hexadecimal digits, as traces and logs show them",
                 "Show packets of this job, such as 650de528 [all]");
    flags.parsed("--channel", filter.channel, "N", number, numbers, "Show packets of this channel [all]");
    flags.parsed("--seq", filter.seq, "N", number, numbers, "Show packets of this fragment [all]");
    const auto text = [](std::string_view given) {
        return given.empty() ? std::nullopt : std::optional<std::string>(given);
    };
    const std::string texts = "a text that is not empty";
    flags.parsed("--type", filter.type, "TYPE", text, texts,
                 "Show packets of this type, such as GRADIENT or JOIN [all]");
    flags.parsed("--event", filter.what, "EVENT", text, texts, "Show this event, such as sent or completed [all]");
    flags.parsed("--where", filter.where, "TEXT", text, texts, "Show places that contain this, such as a port [all]");
    command->footer("Exit status: 0 shown, 1 lines are none of a trace, 2 bad arguments, or a file cannot be read.");
    return [options] { return run_trace(*options); };
}

}  // namespace atp::apps
