// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "check/healing.h"
#include "check/model.h"
#include "check/report.h"
#include "check/tables.h"

namespace atp::check {

// Breadth-first search of all states of a configuration. The first violation found therefore has the shortest trace.
//
// Only states with untried actions are kept whole. For each other state the explorer keeps a fingerprint to recognise
// it, the action that first led to it, and one successor: the state after the delivery of a packet. These successors
// lead from any state to a state with nothing in flight, from which the explorer has executed a healed run to its end.
// Every state therefore completes without further faults, and the proof takes a few bytes per state.
//
// Calling order: run() once.
// Threads: none.
class Explorer {
  public:
    Explorer(const Configuration& configuration, std::unique_ptr<System> system, const Limits& limits);

    Report run();

  private:
    // Consecutive states: for each state its length, then its words. `first` is the number of the first state.
    struct Layer {
        Words words;
        std::uint32_t first = 0;
        std::uint32_t count = 0;
    };

    bool add(std::span<const std::uint32_t> state, std::uint32_t parent, Action action, std::uint32_t& number);
    bool expand(std::span<const std::uint32_t> state, std::uint32_t number);
    bool assess(std::span<const std::uint32_t> state, std::uint64_t fingerprint, std::uint32_t number);
    bool assess_calm_paths();
    void fail(std::uint32_t state, const std::string& what);
    void fail_at(std::uint32_t parent, Action action, const std::string& what);
    void fail_healing(std::uint32_t state);
    Words trace_to(std::uint32_t state, std::vector<TraceStep>& trace);
    void show_progress(std::uint64_t frontier);

    Limits limits_;
    Model model_;
    HealedRun healed_;
    Report report_;
    KeyMap visited_;
    std::vector<std::uint32_t> parents_;
    std::vector<std::uint16_t> actions_;
    std::vector<std::uint32_t> calm_next_;  // the state after a delivery; the state itself if nothing is in flight
    Layer layer_;
    Layer next_layer_;
    Words next_;
    bool full_ = false;
};

// Executes a trace from the initial state, then a healed run. Returns the violation, or an empty text if there is none,
// or "cannot follow" if a step of the trace is impossible.
[[nodiscard]] std::string replay(Model& model, const std::vector<TraceStep>& trace);

}  // namespace atp::check
