// SPDX-License-Identifier: Apache-2.0
#include "figure/lab.h"

#include <fmt/format.h>

#include <mutex>
#include <numeric>
#include <utility>

#include "figure/files.h"
#include "figure/parallel.h"
#include "sim/simulation.h"

namespace atp::figure {
namespace {

// Computes the progress of all points from the progress of each point.
class SharedProgress {
  public:
    SharedProgress(std::size_t points, const std::function<void(double)>& notify) : shares_(points), notify_(notify) {}

    void set(std::size_t point, double share) {
        if (!notify_) return;
        const std::scoped_lock lock(mutex_);
        shares_[point] = share;
        notify_(std::accumulate(shares_.begin(), shares_.end(), 0.0) / static_cast<double>(shares_.size()));
    }

  private:
    std::mutex mutex_;
    std::vector<double> shares_;
    const std::function<void(double)>& notify_;
};

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    return hash;
}

constexpr std::string_view kept_ending = ".kept";

bool is_kept(const std::filesystem::path& path) { return path.extension() == kept_ending; }

std::string failure_of(const sim::Report& report) {
    return report.failures.empty() ? "it did not finish" : report.failures.front();
}

}  // namespace

void forget(const std::filesystem::path& kept) {
    std::error_code error;  // of a folder that does not exist
    for (const auto& entry : std::filesystem::directory_iterator(kept, error)) {
        if (is_kept(entry.path())) std::filesystem::remove(entry.path(), error);
    }
}

void Lab::stop_if_requested() const {
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) throw Interrupted{};
}

std::vector<sim::Report> Lab::run(std::vector<sim::Scenario> points) const {
    for (sim::Scenario& point : points) {
        point.seed = seed();
        if (const auto problem = sim::problem_of(point)) throw Failed(*problem);
    }
    std::vector<sim::Report> reports(points.size());
    SharedProgress progress(points.size(), options_.progress);
    for_each_on_threads(points.size(), options_.threads, [&](std::size_t i) {
        stop_if_requested();
        reports[i] = sim::run(points[i], {.trace = nullptr, .stop = options_.stop, .progress = [&](double share) {
                                              progress.set(i, share);
                                          }});
        stop_if_requested();
        progress.set(i, 1);
    });
    for (std::size_t i = 0; i < reports.size(); ++i) {
        if (reports[i].passed()) continue;
        throw Failed(
            fmt::format("point {} of {}, {}: {}", i + 1, points.size(), reports[i].topology, failure_of(reports[i])));
    }
    return reports;
}

sim::Report Lab::run(const sim::Scenario& point) const { return std::move(run(std::vector{point}).front()); }

std::string Lab::output_of(const std::vector<std::string>& command) const {
    if (!options_.command) throw Failed(command.front() + ": needs LabOptions::command, which is not set");
    auto output = options_.command(command);
    stop_if_requested();
    if (!output && output.error().lacks) throw Lacking(output.error().text);
    if (!output) throw Failed(output.error().text);
    return *std::move(output);
}

std::string Lab::kept_output_of(const std::vector<std::string>& command, unsigned repeat) const {
    if (options_.kept.empty()) return output_of(command);
    std::string words = fmt::format("{}", fmt::join(command, " "));
    if (repeat != 0) words += fmt::format(" # repetition {}", repeat);
    const auto file = options_.kept / fmt::format("{:016x}{}", hash_of(words), kept_ending);
    // The command is the first line, so that a reader finds what a file holds, and no other command reads it.
    if (const auto kept = read_file(file); kept.starts_with(words + "\n")) return kept.substr(words.size() + 1);
    std::string output = output_of(command);
    if (auto made = make_folder(options_.kept); !made) throw Failed(made.error());
    // A full disk or a signal leaves no part of a result under its name.
    std::filesystem::path part = file;
    part += ".part";
    if (auto written = write_file(part, words + "\n" + output); !written) throw Failed(written.error());
    std::filesystem::rename(part, file);
    return output;
}

}  // namespace atp::figure
