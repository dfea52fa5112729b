// SPDX-License-Identifier: Apache-2.0
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
#include "check/model_tensor.h"
#include "check/state_archive.h"
#include "check/truth.h"
#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/variant.h"
#include "protocol/worker.h"

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

// What the checker knows of a node's state without loading it.
struct Summary {
    // A worker:
    bool done = false;    // every tensor has ended
    bool failed = false;  // with an error
    bool crashed = false;
    bool timer_armed = false;
    std::uint32_t next_offset = 0;                      // of the first fragment that it has not sent
    std::array<std::uint8_t, max_window> sent_index{};  // by slot: the aggregator that its last fragment used
    // A server:
    std::uint32_t completed = 0;  // a bit for each fragment
    // A switch:
    bool untouched = true;  // as after a restart
    std::uint8_t held = 0;  // aggregators that are not free
};

struct Sent {
    unsigned to = 0;
    std::uint32_t size = 0;
    std::array<std::byte, ATP_HEADER_BYTES + model_lanes * ATP_LANE_BYTES> bytes{};
};

// A fragment by its place in the model: which job's, and how far from the first.
struct FragmentPlace {
    std::uint8_t job = 0;
    std::int8_t offset = 0;
};

// One step of one node.
struct Step {
    Bytes state;      // of the node, afterwards
    Summary summary;  // of that state
    std::vector<Sent> sent;
    std::string violation;   // of what concerns this node alone; empty when there is none
    std::uint8_t event = 0;  // atp_switch_event
    // What a switch did that only the server's state can judge: gave a fragment's aggregator away because its result
    // must be known, and began to gather one.
    std::optional<FragmentPlace> superseded;
    std::optional<FragmentPlace> claimed;

    // The first thing wrong is the one reported; an empty text says that nothing is.
    void violate(std::string_view text) {
        if (violation.empty()) violation = text;
    }
    void reset() {
        state.clear();
        sent.clear();
        violation.clear();
        summary = {};
        event = 0;
        superseded.reset();
        claimed.reset();
    }
};

namespace ATP_VARIANT {

// A fragment and its stream, as a switch's ghost state remembers it.
struct FragmentId {
    std::uint32_t job = 0;
    std::uint32_t token = 0;  // 0: none
    std::uint32_t seq = 0;
    bool operator==(const FragmentId&) const = default;
};

// The machines of one configuration, each standing for all states of its node: a step loads a state, lets the shipped
// code act on it, judges what it did, and saves the outcome.
//
// Beside the machine's own state a node's state holds ghosts: what the checker remembers in order to judge, and no
// machine ever sees. A worker that crashed is the empty state.
class Machines {
  public:
    explicit Machines(const Configuration& configuration);
    Machines(const Machines&) = delete;
    Machines& operator=(const Machines&) = delete;
    ~Machines();

    // The node as it starts: workers have their tensors, and what they send at once is in step.sent.
    void start(unsigned node, Step& step);
    // Packets that are in flight from the beginning.
    void earlier_packets(std::vector<Sent>& sent);
    // Carries out one step from the state `before`. `packet` is empty unless `input` is a packet.
    void step(unsigned node, std::span<const std::byte> before, Input input, std::span<const std::byte> packet,
              Step& step);

    [[nodiscard]] const Layout& layout() const { return layout_; }

  private:
    struct WorkerNode {
        std::vector<std::unique_ptr<ModelTensor>> owned;
        std::vector<protocol::Tensor*> tensors;
        std::unique_ptr<protocol::Worker> machine;
        // Ghosts.
        std::uint32_t stored = 0;  // fragments whose sum was delivered
        std::array<std::uint8_t, max_window> sent_index{};
    };
    struct ServerNode {
        std::unique_ptr<protocol::Server> machine;
        // Ghosts.
        std::array<std::uint8_t, 2 * max_window> accepted{};  // by seq mod 2W: ranks whose numbers are in
        std::uint32_t completed = 0;
    };
    struct SwitchNode {
        std::unique_ptr<protocol::Switch> machine;
        std::vector<FragmentId> released;  // ghost, by aggregator: the last one released that nobody used since
    };

    [[nodiscard]] WorkerNode make_worker(unsigned job, unsigned rank, bool earlier, std::uint32_t first_seq) const;
    [[nodiscard]] std::unique_ptr<protocol::Server> make_server(unsigned job, bool earlier,
                                                                std::uint32_t first_seq) const;
    void add_switch(unsigned at);
    void leave_behind(unsigned job, bool earlier, std::uint32_t first_seq, std::vector<Sent>& sent);

    template <class Archive>
    static void persist(WorkerNode& worker, Archive& archive);
    template <class Archive>
    static void persist(ServerNode& server, Archive& archive);
    template <class Archive>
    static void persist(SwitchNode& node, Archive& archive);
    void load(unsigned node, std::span<const std::byte> state);
    void save(unsigned node, protocol::Time now, Step& step);

    void step_worker(unsigned node, Input input, Step& step);
    void drain_worker(unsigned node, protocol::Time now, Step& step);
    void step_server(unsigned node, Input input, Step& step);
    void step_switch(unsigned node, Input input, Step& step);
    void route(unsigned node, const protocol::Verdict& verdict, Step& step);
    [[nodiscard]] std::span<std::byte> used_packet() { return std::span(packet_.bytes).first(packet_.size); }

    // judgement.cc
    void judge_sending(WorkerNode& worker, const Sent& sent, Step& step);
    void judge_event(const WorkerNode& worker, const protocol::WorkerEvent& event, Step& step);
    void judge_merge(ServerNode& server, const protocol::ServerCounters& before, Step& step);
    void judge_answer(const Sent& sent, Step& step);
    void judge_switch(SwitchNode& node, const atp_header& header, const atp_aggregator& before, Input input,
                      Step& step);
    [[nodiscard]] FragmentPlace place_of(std::uint32_t job, std::uint32_t seq) const;
    void summarise(unsigned node, Step& step);
    [[nodiscard]] bool reclaimable(protocol::Switch& machine, std::uint32_t index);

    Configuration configuration_;
    Layout layout_;
    Truth truth_;
    std::vector<WorkerNode> workers_;  // all three by node number, empty where the node is of another kind
    std::vector<ServerNode> servers_;
    std::vector<SwitchNode> switches_;
    Sent packet_;  // a copy of the packet of the step in hand: machines may write to it
    std::vector<unsigned> next_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::check
