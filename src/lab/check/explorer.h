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

// Breadth first through all states of a configuration, so that the first violation found has the shortest trace.
//
// Only states whose actions are still to be tried are kept whole. Of the others there remain a fingerprint, to know
// them again, the action that first led there, to tell how, and one successor: the one by delivering a packet.
// Following these from any state leads to one with nothing in flight, from which a healed run was seen to complete: so
// that everything can complete without further faults is shown for every state, for a few bytes each. Threads: none.
class Explorer {
  public:
    Explorer(const Configuration& configuration, std::unique_ptr<System> system, const Limits& limits);

    Report run();

  private:
    // States one after the other, each behind its length; numbered from `first`.
    struct Layer {
        Words words;
        std::uint32_t first = 0;
        std::uint32_t count = 0;
    };

    bool add(std::span<const std::uint32_t> state, std::uint32_t parent, Action action, std::uint32_t& number);
    bool expand(std::span<const std::uint32_t> state, std::uint32_t number);
    bool judge(std::span<const std::uint32_t> state, std::uint64_t fingerprint, std::uint32_t number);
    bool judge_calm_paths();
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
    std::vector<std::uint32_t> calm_next_;  // the state after a delivery; itself where nothing is in flight
    Layer layer_;
    Layer next_layer_;
    Words next_;
    bool full_ = false;
};

// Carries out a trace from the initial state. What broke, or an empty text; "cannot follow" when it does not fit.
[[nodiscard]] std::string replay(Model& model, const std::vector<TraceStep>& trace);

}  // namespace atp::check
