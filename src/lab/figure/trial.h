// SPDX-License-Identifier: Apache-2.0
// Figures on real packets: runs of bench/cluster, in which processes send over links of limited rates.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "figure/lab.h"
#include "sim/report.h"
#include "sim/scenario.h"

namespace atp::figure {

// The links of bench/cluster as the simulator has them, and the product's settings on them. Figures change what they
// vary: Trial and simulation then have it too.
[[nodiscard]] sim::Scenario linked(std::string_view topology, std::int64_t rate_bits_per_s);

// The same, to train models. Their computation is as slow, relative to the transfer of their gradients, as on links of
// the test bed. Models are divided so that computation and transfer, one after the other, take a second at most.
[[nodiscard]] sim::Scenario training(std::string_view topology, std::int64_t rate_bits_per_s,
                                     std::vector<std::string> models, unsigned batch,
                                     std::int64_t testbed_bits_per_s = 100'000'000'000);
// The speed of a job relative to no communication, from the seconds of an iteration, measured or simulated.
[[nodiscard]] double training_speed(const sim::Scenario& network, unsigned job, double seconds);
[[nodiscard]] double training_speed(const sim::Scenario& network, unsigned job, const sim::Report& report);

// All systems take turns on the same links, round by round.
struct Trial {
    sim::Scenario network;             // what a simulation of the same run has too
    std::vector<std::string> systems;  // as bench/cluster calls them
    std::vector<std::string> flags{};  // of what a simulation has not, or has in another form
    std::string_view program = "bench/cluster/run";
};

// A trial of SwitchML with these lanes and slots and this timeout, which its simulation has too.
[[nodiscard]] Trial switchml_trial(sim::Scenario links, const sim::SwitchmlSpec& spec);

// The command line of a trial with so many rounds.
[[nodiscard]] std::vector<std::string> command_of(const Trial& trial, unsigned rounds, std::uint64_t seed);

// One round of a trial.
//
// Failure: Failed if the program printed something else than it does today.
class Outcome {
  public:
    Outcome(const std::string& printed, unsigned round);

    // Bits of the tensor a second, for each rank. Of the busiest host: added over the jobs that it has ranks of.
    [[nodiscard]] double goodput_bps(std::string_view system) const;
    [[nodiscard]] double goodput_bps(std::string_view system, std::size_t job) const;
    // Relative to the payload that the narrowest link can carry.
    [[nodiscard]] double share_of_limit(std::string_view system) const;
    // Of a job's operations or iterations, the median.
    [[nodiscard]] double seconds(std::string_view system, std::size_t job = 0) const;
    [[nodiscard]] double mean_seconds(std::string_view system, std::size_t job = 0) const;
    // A number of the report, by a JSON pointer such as "/stream_bps"; of all rounds.
    [[nodiscard]] double number(const std::string& pointer) const;
    // What the report has of this round below a path, such as the samples of --sample.
    [[nodiscard]] const nlohmann::json& of_round(std::string_view system, const std::string& path) const;
    [[nodiscard]] const nlohmann::json& report() const { return *report_; }

  private:
    template <class Value>
    [[nodiscard]] Value read(const std::string& pointer) const;
    [[nodiscard]] std::vector<double> all_seconds(std::string_view system, std::size_t job) const;

    std::shared_ptr<const nlohmann::json> report_;
    unsigned round_;
};

// The present run's round (Lab::run_index) of each trial. The first run of a figure measures all rounds, and the others
// find them in the kept results. Throws Lacking if this machine cannot make the links.
[[nodiscard]] std::vector<Outcome> measured(const Lab& lab, const std::vector<Trial>& trials);
[[nodiscard]] Outcome measured(const Lab& lab, const Trial& trial);
// The present run of a command that measures once, such as bench/cluster/share.
[[nodiscard]] Outcome measured_once(const Lab& lab, const std::vector<std::string>& command);

}  // namespace atp::figure
