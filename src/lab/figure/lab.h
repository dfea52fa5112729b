// SPDX-License-Identifier: Apache-2.0
// Where figures get their points from.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sim/report.h"
#include "sim/scenario.h"

namespace atp::figure {

// Why a command printed nothing: it failed, or it says that it lacks something on this machine.
struct CommandFailure {
    std::string text;
    bool lacks = false;
};

struct LabOptions {
    bool quick = false;  // fewer and smaller points, which show the same shape
    std::uint64_t seed = 1;
    unsigned threads = 1;
    const std::atomic<bool>* stop = nullptr;  // set by whoever lost patience
    // Called now and then with the share of the points at hand that is done, 0 to 1.
    std::function<void(double)> progress{};
    // Runs a command, and returns what it printed, or why it did not. `atp` is this program; others are given with
    // their folder.
    std::function<tl::expected<std::string, CommandFailure>(const std::vector<std::string>&)> command{};
};

// What a figure's function meets when there is no use in going on. They never leave this module.
struct Interrupted {};
struct Failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct Lacking : Failed {
    using Failed::Failed;
};

// Calling order: any. Borrows nothing but `stop`. One thread, which gets helpers while points run.
class Lab {
  public:
    explicit Lab(LabOptions options) : options_(std::move(options)) {}

    [[nodiscard]] bool quick() const { return options_.quick; }
    [[nodiscard]] std::uint64_t seed() const { return options_.seed; }
    // The first for a quick look, the second where there is time.
    template <class T>
    [[nodiscard]] T pick(T quick, T full) const {  // NOLINT(performance-unnecessary-value-param): braced lists
        return options_.quick ? quick : full;
    }

    // Runs all of them, over all threads, each with the lab's seed; reports in their order, the same for every number
    // of threads. Throws Failed where a sum was wrong or something did not finish.
    [[nodiscard]] std::vector<sim::Report> run(std::vector<sim::Scenario> points) const;
    [[nodiscard]] sim::Report run(const sim::Scenario& point) const;

    // What the command printed. Throws Failed where it did not end well, Lacking where it could not begin.
    [[nodiscard]] std::string output_of(const std::vector<std::string>& command) const;

  private:
    void stop_if_told() const;

    LabOptions options_;
};

}  // namespace atp::figure
