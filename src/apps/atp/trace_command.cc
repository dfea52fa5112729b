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

// Appends the accepted lines. Returns how many lines are no trace lines; nullopt: the file cannot be read.
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
    fmt::print(stderr, "atp trace: {} lines are not trace lines: give files that --trace or ATP_TRACE wrote\n",
               foreign);
    return exit_failed;
}

}  // namespace

std::function<int()> register_trace(CLI::App& program) {
    auto options = std::make_shared<TraceOptions>();
    Command& command = Command::add(program, "trace", "Show traces of switches, ranks and simulations, merged by time");
    command.add_option("files", options->files, "Files that --trace or ATP_TRACE wrote, of one host or one simulation")
        ->type_name("FILE")
        ->required();
    Flags flags(command, "Filter");
    constexpr std::uint64_t most = UINT32_MAX;
    const auto number = [](std::string_view text) { return parse_whole(text, 0, most); };
    const std::string numbers = whole_forms(0, most);
    wire::TraceFilter& filter = options->filter;
    flags.parsed("--job", filter.job, "JOB", wire::parse_job, "eight hexadecimal digits, as traces and logs show them",
                 "Show packets of this job [all]");
    flags.parsed("--channel", filter.channel, "N", number, numbers, "Show packets of this channel [all]");
    flags.parsed("--seq", filter.seq, "N", number, numbers, "Show packets of this fragment [all]");
    const auto text = [](std::string_view given) {
        return given.empty() ? std::nullopt : std::optional<std::string>(given);
    };
    flags.parsed("--type", filter.type, "TYPE", text, "any type", "Show packets of this type, such as GRADIENT [all]");
    flags.parsed("--event", filter.what, "EVENT", text, "any event",
                 "Show this event, such as sent or completed [all]");
    flags.parsed("--where", filter.where, "TEXT", text, "any text",
                 "Show places that contain this text, such as a port [all]");
    command.add_example("atp trace rank0.txt switch.txt --job 650de528 --seq 3",
                        "Follow one fragment of a job from a rank through a switch.");
    command.set_exit({{exit_passed, "shown"},
                      {exit_failed, "some lines are not trace lines"},
                      {exit_misused, "bad arguments, or a file cannot be read"}});
    return [options] { return run_trace(*options); };
}

}  // namespace atp::apps
