// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/action.h"
#include "check/configuration.h"
#include "check/system.h"
#include "check/tables.h"

namespace atp::check {

// A state of the whole system. The first word holds the remaining budget of each fault and the bit late_claim. Then
// each node has a word, the number of its state. The last words are the numbers of the packets in flight, in ascending
// order. Two states are equal if their words are equal.
using Words = std::vector<std::uint32_t>;

// Ghost bit beside the budgets: a late copy claimed an aggregator for a fragment that was already complete.
inline constexpr std::uint32_t late_claim = 1U << 31U;
static_assert(fault_count * 4 <= 32);  // the budget of the last fault leaves the bit free

// The system of one configuration as a graph of states.
//
// Node states and packets are numbered in the order of discovery. The action of a node depends on its state, the input
// and the packet only. The model computes it once and stores it, so a step of the system costs a few table look-ups.
//
// Threads: none. Each exploration has its own model.
class Model {
  public:
    Model(const Configuration& configuration, std::unique_ptr<System> system);

    // The constructor has checked this state: violation() describes its violation, if any.
    [[nodiscard]] const Words& initial() const { return initial_; }
    // Calls `visit(Action)` for every possible event of `state`.
    template <class Visit>
    void for_each_action(std::span<const std::uint32_t> state, Visit visit);
    // Executes an action. A fault is subtracted from its budget. False if an invariant is violated: see violation().
    [[nodiscard]] bool apply(std::span<const std::uint32_t> state, Action action, Words& next);
    // Checks the invariants of a state in which nothing is in flight.
    [[nodiscard]] bool assess_quiet(std::span<const std::uint32_t> state);
    [[nodiscard]] const std::string& violation() const { return violation_; }

    // Nothing is in flight. With a clock, no faults can follow either.
    [[nodiscard]] bool quiet(std::span<const std::uint32_t> state) const {
        return state.size() == first_packet_ && !(has_clock() && left(state[0], Fault::timeout) != 0);
    }
    [[nodiscard]] bool settled(std::span<const std::uint32_t> state);
    // A tick may pass although packets are in flight.
    [[nodiscard]] bool may_outlast(std::span<const std::uint32_t> state) const {
        return left(state[0], Fault::ageing) != 0 || !any_in_flight(state);
    }
    [[nodiscard]] bool has_clock() const { return configuration_.has_clock(); }
    [[nodiscard]] bool any_crashed(std::span<const std::uint32_t> state) const;
    [[nodiscard]] std::span<const std::uint32_t> packets(std::span<const std::uint32_t> state) const {
        return state.subspan(first_packet_);
    }
    [[nodiscard]] unsigned nodes() const { return system_->nodes(); }
    [[nodiscard]] bool timer_armed(std::span<const std::uint32_t> state, unsigned node) const {
        return summary(state, node).timer_armed;
    }
    [[nodiscard]] bool done(std::span<const std::uint32_t> state, unsigned node) const;

    // Describes the action in one line for users.
    [[nodiscard]] std::string describe(std::span<const std::uint32_t> state, Action action);
    // The packet of an action as in flight: its first byte is the destination node. Empty: no packet.
    [[nodiscard]] std::span<const std::byte> packet_of(std::span<const std::uint32_t> state, Action action) const;

    [[nodiscard]] std::size_t node_states() const;
    [[nodiscard]] std::size_t packet_kinds() const { return packets_.size(); }

  private:
    // The complete effect of one step of one node.
    struct Transition {
        std::uint32_t next = 0;
        std::uint32_t first_sent = 0;
        std::uint16_t sent_count = 0;
        bool concerns_others = false;  // System::assess() must check the step
        Claims claims;
        std::uint32_t violation = 0;  // index into violations_; 0: none
    };
    struct NodeStates {
        BytePool pool;
        std::vector<Summary> summaries;
        KeyMap transitions;
    };

    void start();
    const Transition& transition(unsigned node, std::uint32_t node_state, Input input, std::uint32_t packet);
    std::uint32_t remember(unsigned node, const Step& step);
    std::uint32_t intern_packet(const Sent& sent);
    [[nodiscard]] bool assess_system(unsigned node, const Transition& taken, Words& next);
    [[nodiscard]] const Summary& summary(std::span<const std::uint32_t> state, unsigned node) const {
        return states_[node].summaries[state[node + 1]];
    }
    [[nodiscard]] unsigned target_of(std::uint32_t packet) const { return targets_[packet]; }
    [[nodiscard]] static unsigned left(std::uint32_t budget, Fault fault) {
        return (budget & ~late_claim) >> (4U * static_cast<unsigned>(fault)) & 0xfU;
    }
    static std::uint32_t spend(std::uint32_t budget, Fault fault) {
        return budget - (1U << (4U * static_cast<unsigned>(fault)));
    }
    [[nodiscard]] bool tick(std::span<const std::uint32_t> state, Words& next);
    void put_in_flight(const Transition& taken, Words& next) const;
    // Packets that are no commands.
    [[nodiscard]] bool any_in_flight(std::span<const std::uint32_t> state) const;
    [[nodiscard]] bool may_tick(std::span<const std::uint32_t> state) const;
    [[nodiscard]] bool differs_when(std::span<const std::uint32_t> state, std::uint32_t packet, Input input);

    Configuration configuration_;
    std::unique_ptr<System> system_;
    std::size_t first_packet_;  // index of the first packet in a state
    std::uint32_t full_budget_ = 0;
    Words initial_;
    std::vector<NodeStates> states_;
    std::vector<const Summary*> summaries_;  // of the state that is being checked
    BytePool packets_;
    std::vector<std::uint8_t> targets_;  // node, by packet
    std::vector<bool> commands_;         // by packet
    std::vector<Transition> transitions_;
    std::vector<Transition> taken_;    // of the nodes in one tick
    std::vector<std::uint32_t> sent_;  // packets of all transitions
    std::vector<std::string> violations_{""};
    std::string violation_;
    Step step_;
    Bytes scratch_;
};

template <class Visit>
void Model::for_each_action(std::span<const std::uint32_t> state, Visit visit) {
    const std::uint32_t budget = state[0];
    const std::span<const std::uint32_t> flying = packets(state);
    using Kind = Action::Kind;
    for (std::size_t i = 0; i < flying.size(); ++i) {
        if (i != 0 && flying[i] == flying[i - 1]) continue;
        const auto at = static_cast<std::uint16_t>(i);
        visit(Action{Kind::deliver, at});
        if (commands_[flying[i]]) continue;
        if (left(budget, Fault::loss) != 0) visit(Action{Kind::lose, at});
        if (left(budget, Fault::duplicate) != 0) visit(Action{Kind::duplicate, at});
        if (has_clock()) continue;
        if (left(budget, Fault::ageing) != 0 && differs_when(state, flying[i], Input::packet_aged)) {
            visit(Action{Kind::deliver_aged, at});
        }
        if (left(budget, Fault::mark) != 0 && differs_when(state, flying[i], Input::packet_marked)) {
            visit(Action{Kind::deliver_marked, at});
        }
    }
    if (has_clock() && may_tick(state)) visit(Action{Kind::tick, 0});
    for (unsigned node = 0; node < nodes(); ++node) {
        const auto at = static_cast<std::uint16_t>(node);
        const NodeKind kind = system_->kind(node);
        if (kind == NodeKind::aggregating_switch) {
            if (left(budget, Fault::restart) != 0 && !summary(state, node).untouched) visit(Action{Kind::restart, at});
            if (left(budget, Fault::change) != 0 && summary(state, node).may_change) visit(Action{Kind::change, at});
            const bool may_crash = configuration_.switches_crash && !summary(state, node).crashed;
            if (may_crash && left(budget, Fault::crash) != 0) visit(Action{Kind::crash, at});
        } else if (kind == NodeKind::worker && !summary(state, node).done) {
            const bool may_expire = !has_clock() && summary(state, node).timer_armed;
            if (may_expire && left(budget, Fault::timeout) != 0) visit(Action{Kind::timeout, at});
            if (left(budget, Fault::crash) != 0) visit(Action{Kind::crash, at});
        }
    }
}

}  // namespace atp::check
