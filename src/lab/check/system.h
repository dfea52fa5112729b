// SPDX-License-Identifier: Apache-2.0
// The system that the model explores: the nodes of one configuration. Each node executes one step at a time, and each
// step is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/configuration.h"
#include "check/layout.h"
#include "check/state_archive.h"
#include "check/truth.h"
#include "wire/format.h"

namespace atp::check {

// An event of one node.
enum class Input : std::uint8_t {
    packet,
    packet_aged,    // a packet; the aggregator that it names counts as abandoned
    packet_marked,  // a packet with a congestion mark
    timeout,
    deadline,
    restart,
    crash,
    change,
};

// The time of the input: late enough for its timer, deadline or age to have expired.
[[nodiscard]] constexpr Time time_of(Input input) {
    switch (input) {
        case Input::packet_aged: return after_ageing;
        case Input::timeout: return after_timeout;
        case Input::deadline: return after_deadline;
        default: return model_now;
    }
}

// Properties of a node's state that the checker reads without loading the state.
struct Summary {
    // Workers:
    bool done = false;    // every tensor has ended
    bool failed = false;  // a tensor ended with an error
    bool crashed = false;
    bool timer_armed = false;
    std::uint32_t next_offset = 0;                      // first fragment not yet sent
    std::array<std::uint8_t, max_window> sent_index{};  // ATP, by slot: aggregator of its last fragment
    std::array<std::uint8_t, max_window> phase{};       // SwitchML, by slot: number of earlier uses
    // ATP, with congestion marks, as bits by offset: fragments with an ACK, and those whose ACK had a mark
    std::uint8_t taken = 0;
    std::uint8_t marked = 0;
    // Hosts of servers:
    std::array<std::uint32_t, max_jobs> completed{};  // by job: bit mask of fragments
    // Switches:
    bool untouched = true;    // equals the state after a restart
    bool may_change = false;  // its slices: no change is under way, or no older fragment is left
    std::uint8_t held = 0;    // aggregators that are not free; joining: channels
    // Joining. Ranks: started, and whether the tree is or was ready. Switches: whether the tree is ready.
    bool started = false;
    bool ready = false;
    bool left = false;       // in order
    bool restarted = false;  // a switch
};
using Summaries = std::span<const Summary* const>;  // by node

inline constexpr std::uint32_t model_packet_bytes = ATP_HEADER_BYTES + model_lanes * ATP_LANE_BYTES;

struct Sent {
    unsigned to = 0;
    std::uint32_t size = 0;
    std::array<std::byte, 512> bytes{};  // large enough for all protocols
};

// A fragment of the model: its job, and its distance from the first fragment.
struct FragmentPlace {
    std::uint8_t job = 0;
    std::int8_t offset = 0;
};

// Actions of a switch that are valid only in some states of other nodes.
// superseded: a newer fragment claimed the aggregator of this fragment, which the server must have completed.
// claimed: this fragment claimed an aggregator.
// Of a rank that joins: became_ready: its switch reported that all have joined. blames: its job failed because of one
// of the nodes `blamed`, as bits. lost_sums: these nodes say that they restarted.
struct Claims {
    bool became_ready = false;
    bool blames = false;
    bool lost_sums = false;
    std::uint16_t blamed = 0;
    std::optional<FragmentPlace> superseded;
    std::optional<FragmentPlace> claimed;
};

// Result of one step of one node.
struct Step {
    Bytes state;      // of the node, after the step
    Summary summary;  // of that state
    std::vector<Sent> sent;
    std::string violation;  // of this node's invariants; empty: none
    Claims claims;

    // Records a violation, unless the step has one already. An empty text is no violation.
    void violate(std::string_view text) {
        if (violation.empty()) violation = text;
    }
    void reset() {
        state.clear();
        sent.clear();
        violation.clear();
        summary = {};
        claims = {};
    }
};

// Result of the checks that need several nodes.
struct SystemAssessment {
    std::string_view violation;  // empty: none
    bool late_claim = false;     // a late copy claimed an aggregator for a fragment that was already complete
};

// The state machines of one configuration. Each machine serves all states of its node: a step loads a state,
// calls the shipped code, checks the result and saves the new state.
//
// The state of a node includes ghosts beside the machine's own state: values that the checker needs and that no machine
// reads. A crashed worker has the empty state.
class System {
  public:
    System() = default;
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    virtual ~System() = default;

    [[nodiscard]] virtual unsigned nodes() const = 0;
    [[nodiscard]] virtual NodeKind kind(unsigned node) const = 0;
    [[nodiscard]] virtual std::string name(unsigned node) const = 0;

    // The initial state of a node. A worker has submitted its tensors; step.sent holds the packets that it sends at
    // once.
    virtual void start(unsigned node, Step& step) = 0;
    // Packets in flight from the start.
    virtual void earlier_packets(std::vector<Sent>& sent) = 0;
    // Executes one step from the state `before`. `packet` is empty unless `input` is a packet.
    virtual void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
                      Step& step) = 0;
    // Checks a worker's step that sent packets, or a switch's step with claims. `after`: all nodes after the step.
    [[nodiscard]] virtual SystemAssessment assess(unsigned node, const Claims& claims, Summaries after) const = 0;
    // Without further faults, nothing is left to happen. `now`: all nodes.
    [[nodiscard]] virtual bool settled(Summaries now) const {
        for (unsigned node = 0; node < nodes(); ++node) {
            if (kind(node) == NodeKind::worker && !now[node]->done) return false;
        }
        return true;
    }
    // An order to a node, which cannot be lost, and which waits until it is delivered.
    [[nodiscard]] virtual bool is_command(std::span<const std::byte> /*packet*/) const { return false; }
    // A short description of a packet for users.
    [[nodiscard]] virtual std::string describe(std::span<const std::byte> packet) const = 0;
};

// Creates the shipped machines of the configuration's protocol.
namespace shipped {
[[nodiscard]] std::unique_ptr<System> make_system(const Configuration& configuration);
}  // namespace shipped

// Creates the machines with injected faults. A thread-local variable selects the active fault (protocol/breaks.h).
namespace breakable {
[[nodiscard]] std::unique_ptr<System> make_system(const Configuration& configuration);
}  // namespace breakable

}  // namespace atp::check
