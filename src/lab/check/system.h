// SPDX-License-Identifier: Apache-2.0
// What the model explores: the nodes of one configuration, each of them machines of some protocol that take one step at
// a time, and what must hold of the steps.
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

// What happens to one node.
enum class Input : std::uint8_t {
    packet,
    packet_aged,    // the aggregator it names counts as abandoned
    packet_marked,  // congestion was marked on its way
    timeout,
    deadline,
    restart,
    crash,
};

// When: what happened is over, so that only its outcome is left to judge.
[[nodiscard]] constexpr Time time_of(Input input) {
    switch (input) {
        case Input::packet_aged: return after_ageing;
        case Input::timeout: return after_timeout;
        case Input::deadline: return after_deadline;
        default: return model_now;
    }
}

// What the checker knows of a node's state without loading it.
struct Summary {
    // A worker:
    bool done = false;    // every tensor has ended
    bool failed = false;  // with an error
    bool crashed = false;
    bool timer_armed = false;
    std::uint32_t next_offset = 0;                      // of the first fragment that it has not sent
    std::array<std::uint8_t, max_window> sent_index{};  // ATP, by slot: the aggregator that its last fragment used
    std::array<std::uint8_t, max_window> phase{};       // SwitchML, by slot: how often it was used before
    // A server:
    std::uint32_t completed = 0;  // a bit for each fragment
    // A switch:
    bool untouched = true;  // as after a restart
    std::uint8_t held = 0;  // aggregators that are not free
};
using Summaries = std::span<const Summary* const>;  // by node

struct Sent {
    unsigned to = 0;
    std::uint32_t size = 0;
    std::array<std::byte, ATP_HEADER_BYTES + model_lanes * ATP_LANE_BYTES> bytes{};  // room for any protocol's
};

// A fragment by its place in the model: which job's, and how far from the first.
struct FragmentPlace {
    std::uint8_t job = 0;
    std::int8_t offset = 0;
};

// What a switch did that only the state of others can judge: gave a fragment's aggregator away because its result must
// be known, and began to gather one.
struct Claims {
    std::optional<FragmentPlace> superseded;
    std::optional<FragmentPlace> claimed;
};

// One step of one node.
struct Step {
    Bytes state;      // of the node, afterwards
    Summary summary;  // of that state
    std::vector<Sent> sent;
    std::string violation;  // of what concerns this node alone; empty when there is none
    Claims claims;

    // The first thing wrong is the one reported; an empty text says that nothing is.
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

// What no node can judge alone.
struct SystemJudgement {
    std::string_view violation;  // empty when there is none
    bool late_claim = false;     // a late copy began to gather for a fragment that was complete already
};

// The machines of one configuration, each standing for all states of its node: a step loads a state, lets the shipped
// code act on it, judges what it did, and saves the outcome.
//
// Beside the machine's own state a node's state holds ghosts: what the checker remembers in order to judge, and no
// machine ever sees. A worker that crashed is the empty state.
class System {
  public:
    System() = default;
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    virtual ~System() = default;

    [[nodiscard]] virtual unsigned nodes() const = 0;
    [[nodiscard]] virtual NodeKind kind(unsigned node) const = 0;
    [[nodiscard]] virtual std::string name(unsigned node) const = 0;

    // The node as it starts: workers have their tensors, and what they send at once is in step.sent.
    virtual void start(unsigned node, Step& step) = 0;
    // Packets that are in flight from the beginning.
    virtual void earlier_packets(std::vector<Sent>& sent) = 0;
    // Carries out one step from the state `before`. `packet` is empty unless `input` is a packet.
    virtual void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
                      Step& step) = 0;
    // Of a worker's step that sent something, or of a switch's with claims; `after` is of all nodes after it.
    [[nodiscard]] virtual SystemJudgement judge(unsigned node, const Claims& claims, Summaries after) const = 0;
    // A packet for people, in a few words.
    [[nodiscard]] virtual std::string describe(std::span<const std::byte> packet) const = 0;
};

// Over the machines as they ship, of the configuration's protocol.
namespace shipped {
[[nodiscard]] std::unique_ptr<System> make_system(const Configuration& configuration);
}  // namespace shipped

// Over those that hold the deliberate mistakes; which of them are awake is the thread's affair (protocol/breaks.h).
namespace breakable {
[[nodiscard]] std::unique_ptr<System> make_system(const Configuration& configuration);
}  // namespace breakable

}  // namespace atp::check
