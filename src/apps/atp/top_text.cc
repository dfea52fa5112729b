// SPDX-License-Identifier: Apache-2.0
#include "apps/atp/top_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "metrics/counter_sums.h"
#include "net/udp_report.h"
#include "protocol/switch.h"
#include "wire/job_text.h"

namespace atp::apps {
namespace {

// What a switch or a job has done so far.
struct Handled {
    std::uint64_t added = 0;
    std::uint64_t passed = 0;
    std::uint64_t resent = 0;
    std::uint64_t claimed = 0;
    std::uint64_t collided = 0;
    std::uint64_t dropped = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t sent_bytes = 0;
};

void add(const protocol::SwitchCounters& counters, Handled& work) {
    const auto sum = [&](std::span<const std::string_view> names) {
        return metrics::sum_of(protocol::switch_fields, counters, names);
    };
    work.added += sum(metrics::added_counters);
    work.passed += sum(metrics::passed_counters);
    work.resent += sum(metrics::resent_counters);
    work.claimed += counters.events[ATP_EVENT_CLAIMED];
    work.collided += counters.events[ATP_EVENT_COLLIDED];
}

Handled work_of(const client::SwitchReport& report) {
    Handled work;
    for (const client::ShardReport& shard : report.shards) {
        add(shard.packets, work);
        work.dropped += metrics::sum_of(net::udp_fields, shard.udp, metrics::dropped_counters);
        work.received_bytes += shard.udp.received_bytes;
        work.sent_bytes += shard.udp.sent_bytes;
    }
    return work;
}

struct JobAtSwitch {
    Handled work{};
    std::string name{};
    std::string tenant{};
    std::uint32_t channels = 0;
    std::uint32_t present = 0;
    std::uint32_t expected = 0;
    std::optional<client::SlowestChild> slowest{};
};

std::map<std::uint32_t, JobAtSwitch> jobs_of(const client::SwitchReport& report) {
    std::map<std::uint32_t, JobAtSwitch> jobs;
    for (const client::ShardReport& shard : report.shards) {
        for (const client::JobReport& job : shard.jobs) add(job.counters, jobs[job.job].work);
        for (const client::ChannelReport& channel : shard.channels) {
            JobAtSwitch& job = jobs[channel.job];
            if (!channel.job_name.empty()) job.name = channel.job_name;
            if (!channel.tenant.empty()) job.tenant = channel.tenant;
            ++job.channels;
            job.present += channel.present;
            job.expected += channel.expected;
            const auto& slowest = channel.slowest;
            if (!slowest) continue;
            if (!job.slowest || slowest->waited_permille > job.slowest->waited_permille) job.slowest = slowest;
        }
    }
    return jobs;
}

// The report of the same start at the last look; nullptr: there is none.
const client::SwitchReport* earlier(const Look& now, const Look& before, std::size_t i) {
    if (i >= before.reports.size() || !before.reports[i] || !now.reports[i]) return nullptr;
    return before.reports[i]->id == now.reports[i]->id ? &*before.reports[i] : nullptr;
}

double rate(std::uint64_t now, std::uint64_t then, double seconds) {
    return now > then && seconds > 0 ? static_cast<double>(now - then) / seconds : 0;
}

// Of at most five characters.
std::string brief(double value) {
    for (const auto& [size, prefix] : {std::pair{1e9, 'G'}, std::pair{1e6, 'M'}, std::pair{1e3, 'k'}}) {
        if (value >= size) return fmt::format("{:.{}f}{}", value / size, value >= 100 * size ? 0 : 1, prefix);
    }
    return fmt::format("{:.0f}", value);
}

// Of at most five characters.
std::string percent(double part, double whole) {
    if (whole <= 0) return "-";
    const double value = 100 * part / whole;
    return fmt::format("{:.{}f}%", value, value < 99.95 ? 1 : 0);
}

std::string slowest_of(const std::optional<client::SlowestChild>& slowest) {
    constexpr unsigned least_permille = 10;
    if (!slowest || slowest->waited_permille < least_permille) return "-";
    return fmt::format("{} {:.0f}%",
                       slowest->rank ? fmt::format("rank {}", *slowest->rank) : fmt::format("unit {}", slowest->unit),
                       slowest->waited_permille / 10.0);
}

// With " no parent" behind them they fill 80 columns.
constexpr std::string_view switch_columns = "{:>2} {:<21} {:>5} {:>5} {:>7} {:>6} {:>5} {:>6} {:>5}";

std::string switch_line(std::size_t number, const std::string& name, const std::optional<client::SwitchReport>& report,
                        const client::SwitchReport* then, double seconds) {
    if (!report) return fmt::format("{:>2} {:<21} does not answer", number, name);
    const Handled now = work_of(*report);
    const Handled past = then == nullptr ? now : work_of(*then);
    const auto of = [&](std::uint64_t Handled::*count) { return rate(now.*count, past.*count, seconds); };
    std::string line = fmt::format(switch_columns, number, name, brief(8 * of(&Handled::received_bytes)),
                                   brief(8 * of(&Handled::sent_bytes)), brief(of(&Handled::added)),
                                   brief(of(&Handled::passed)), percent(of(&Handled::collided), of(&Handled::claimed)),
                                   brief(of(&Handled::resent)), brief(static_cast<double>(now.dropped)));
    if (!report->parent.empty() && !report->parent_answers) line += " no parent";
    return line;
}

// Whose job it is, and what people call it.
std::string known_as(const JobAtSwitch& job) {
    if (job.tenant.empty()) return job.name.empty() ? "-" : job.name;
    return job.name.empty() ? job.tenant : job.tenant + "/" + job.name;
}

struct JobLine {
    double added;
    std::string text;
};

std::vector<JobLine> job_lines(const Look& now, const Look& before, double seconds) {
    std::vector<JobLine> lines;
    for (std::size_t i = 0; i < now.reports.size(); ++i) {
        if (!now.reports[i]) continue;
        const client::SwitchReport* const then = earlier(now, before, i);
        const auto past = then == nullptr ? std::map<std::uint32_t, JobAtSwitch>{} : jobs_of(*then);
        for (const auto& [number, job] : jobs_of(*now.reports[i])) {
            const auto found = past.find(number);
            const Handled& old = found == past.end() ? job.work : found->second.work;
            const auto of = [&](std::uint64_t Handled::*count) { return rate(job.work.*count, old.*count, seconds); };
            const std::uint32_t channels = std::max(job.channels, 1U);
            lines.push_back(
                {of(&Handled::added), fmt::format("{:<8} {:>6} {:<14.14} {:>7} {:>7} {:>7} {:>6} {:>6} {}",
                                                  wire::job_to_string(number), i + 1, known_as(job),
                                                  fmt::format("{}/{}", job.present / channels, job.expected / channels),
                                                  brief(of(&Handled::added)), brief(of(&Handled::passed)),
                                                  percent(of(&Handled::collided), of(&Handled::claimed)),
                                                  brief(of(&Handled::resent)), slowest_of(job.slowest))});
        }
    }
    std::ranges::stable_sort(lines, std::greater{}, &JobLine::added);
    return lines;
}

}  // namespace

std::vector<std::string> top_lines(const Look& now, const Look& before, double seconds, std::size_t width,
                                   std::size_t height) {
    const auto up = std::ranges::count_if(now.reports, [](const auto& report) { return report.has_value(); });
    const std::vector<JobLine> jobs = job_lines(now, before, seconds);
    std::vector<std::string> lines{
        fmt::format("ATP: {} of {} switches up, {} at switches; q ends", up, now.names.size(),
                    counted(jobs.size(), "job")),
        "", fmt::format(switch_columns, "", "switch", "in", "out", "added/s", "passed", "coll.", "resent", "drops")};
    // The switches leave half of the lines to the jobs.
    const std::size_t room = height > 8 ? height / 2 - 4 : 1;
    const std::size_t shown = std::min(now.names.size(), room);
    for (std::size_t i = 0; i < shown; ++i) {
        lines.push_back(switch_line(i + 1, now.names[i], now.reports[i], earlier(now, before, i), seconds));
    }
    if (shown < now.names.size()) lines.push_back(fmt::format("and {} more", now.names.size() - shown));
    lines.emplace_back();
    lines.push_back(fmt::format("{:<8} {:>6} {:<14} {:>7} {:>7} {:>7} {:>6} {:>6} {}", "job", "switch", "tenant/name",
                                "members", "added/s", "passed", "coll.", "resent", "waits"));
    for (const JobLine& job : jobs) lines.push_back(job.text);
    if (jobs.empty()) lines.emplace_back("no jobs");
    if (lines.size() > height) lines.resize(height);
    for (std::string& line : lines) line = first_columns(printable(line), width);
    return lines;
}

}  // namespace atp::apps
