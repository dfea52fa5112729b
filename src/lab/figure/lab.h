// SPDX-License-Identifier: Apache-2.0
// Runs simulations and commands for figures.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sim/report.h"
#include "sim/scenario.h"

namespace atp::figure {

// Reason of a failed command. `lacks`: the machine lacks something that the command needs.
struct CommandFailure {
    std::string text;
    bool lacks = false;
};

// A free input whose value is multiplied by a factor, to see whether it decides a verdict.
struct Variation {
    std::string_view name{};
    double factor = 1;
};

struct LabOptions {
    bool quick = false;  // fewer and smaller points with the same shape
    bool real = false;   // the figures on real packets instead of the simulated ones
    unsigned runs = 0;   // seeds of a figure, or rounds if measured; 0: five seeds, three rounds, or one if quick
    unsigned run = 0;    // number of the present run, from 0
    Variation varied{};
    std::uint64_t seed = 1;
    unsigned threads = 1;
    const std::atomic<bool>* stop = nullptr;  // the caller sets it to stop the run
    // Called from time to time with the completed share of the current points, 0 to 1.
    std::function<void(double)> progress{};
    // Runs a command and returns its standard output, or the reason of the failure. `atp` is this program; other
    // commands include their folder.
    std::function<tl::expected<std::string, CommandFailure>(const std::vector<std::string>&)> command{};
    double* busiest = nullptr;  // gets the largest share of the processors' time that a measurement used
    // Results of long commands, which an interrupted or repeated run finds there. Empty: none are kept.
    std::filesystem::path kept{};
};

// Removes results from a folder that LabOptions::kept named, and no other file.
void forget(const std::filesystem::path& kept);

// Exceptions that end the function of a figure. They never leave this module.
struct Interrupted {};
struct Failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct Lacking : Failed {
    using Failed::Failed;
};

// Ownership: borrows `stop` only. Calling order: any. Threads: one; run() starts further threads and joins them.
class Lab {
  public:
    explicit Lab(LabOptions options) : options_(std::move(options)) {}

    [[nodiscard]] bool quick() const { return options_.quick; }
    [[nodiscard]] std::uint64_t seed() const { return options_.seed + options_.run; }
    [[nodiscard]] std::uint64_t first_seed() const { return options_.seed; }
    [[nodiscard]] unsigned run_index() const { return options_.run; }
    [[nodiscard]] unsigned runs() const { return options_.runs; }
    // Selects the first value in quick mode, else the second.
    template <class T>
    [[nodiscard]] T pick(T quick, T full) const {  // NOLINT(performance-unnecessary-value-param): braced lists
        return options_.quick ? quick : full;
    }

    // The value of a free input of the figure, times the factor of the variation if it is this one.
    template <class T>
    [[nodiscard]] T free(std::string_view name, T value) const {
        if (options_.varied.name != name) return value;
        return static_cast<T>(static_cast<double>(value) * options_.varied.factor);
    }

    // Runs all points on all threads, each with the seed of this Lab. Reports have the order of the points and do not
    // depend on the number of threads. Throws Failed if a sum was wrong or a run did not finish.
    [[nodiscard]] std::vector<sim::Report> run(std::vector<sim::Scenario> points) const;
    [[nodiscard]] sim::Report run(const sim::Scenario& point) const;

    // Standard output of the command. Throws Failed if it failed, Lacking if it could not start.
    [[nodiscard]] std::string output_of(const std::vector<std::string>& command) const;
    // The same, or what an earlier run of the same command printed (LabOptions::kept).
    // `repeat`: which repetition of the command is meant.
    [[nodiscard]] std::string kept_output_of(const std::vector<std::string>& command, unsigned repeat = 0) const;
    void note_busy(double share) const {
        if (options_.busiest != nullptr) *options_.busiest = std::max(*options_.busiest, share);
    }
    void progress(double share) const {
        if (options_.progress) options_.progress(share);
    }

  private:
    void stop_if_requested() const;

    LabOptions options_;
};

}  // namespace atp::figure
