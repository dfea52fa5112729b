// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/packet_list.h"
#include "host/rank_host.h"
#include "host/switch_host.h"
#include "support/packets.h"
#include "support/pipeline.h"
#include "support/random.h"
#include "support/tree.h"

namespace atp::testing {

// A packet on one link.
struct Flight {
    Node from;
    Node to;
    Bytes bytes;
    bool congested = false;  // the queue of the link marks the packet CE
    NextPass next_pass{};    // of a packet between two passes of a pipeline
    // The processes between which the packet passes a pipeline. nullopt: the ends of the link.
    std::optional<Node> sender{};
    std::optional<Node> receiver{};

    [[nodiscard]] atp_header header() const { return header_in(bytes); }
    [[nodiscard]] bool is(atp_type type) const { return header().type == type; }
    [[nodiscard]] bool is(atp_type type, std::uint32_t seq) const { return is(type) && header().seq == seq; }
    [[nodiscard]] bool has(atp_flag flag) const { return (header().flags & flag) != 0; }
};

struct Faults {
    double loss = 0;
    double duplication = 0;
    double reordering = 0;  // share of deliveries that take a random packet instead of the oldest
    double marking = 0;     // share of packets that get a CE mark
};

// A network of the processes that ship: ranks, switches, and the process of a rank that only serves. The test's script
// decides what happens to every packet. Messages of joining arrive at once, before the first packet of a tensor and
// whenever they are due, and no script sees them.
//
// If there are several units or a direct one, a switch of level 1 is in front of the server. A pipeline is a switch in
// the path, which has no address. Behind the last one is the switch that the ranks join, with the server.
//
// All links share one first-in-first-out queue. A rule decides for each packet that enters a link: deliver, drop, hold
// (until release()) or duplicate. Time advances by 1 us per delivery, and by expire() and wait(). Every run of a script
// is therefore identical. Calling order: submit() to the workers, then run() or finish(). The script may change the
// rule between calls.
class Network {
  public:
    enum class Disposition : std::uint8_t { deliver, drop, hold, duplicate };
    using Rule = std::function<Disposition(Flight&)>;
    using Match = std::function<bool(const Flight&)>;

    explicit Network(const NetworkConfig& config);
    Network(const Network&) = delete;  // the pipelines borrow the membership
    Network& operator=(const Network&) = delete;

    // Each call gives the worker its next tensor. The sums are in output().
    void submit(unsigned rank, std::vector<float> values, Time deadline = never, std::uint16_t purpose = 0);
    // As submit(), for a tensor of unscaled integers. Its sums are in integers().
    void submit_integers(unsigned rank, std::vector<std::int32_t> values, std::uint16_t purpose = 0);
    // Submits a tensor that the script owns. It must exist until its operation ends, and it receives its own sums.
    void submit(unsigned rank, protocol::Tensor& tensor);
    // Submits a tensor of the same length to every worker: worker r contributes value_of(r, element).
    void submit_all(std::size_t elements, const std::function<float(unsigned, std::size_t)>& value_of);

    void set_rule(Rule rule) { rule_ = std::move(rule); }
    void clear_rule() { rule_ = nullptr; }
    // Set a rule that drops or holds the next `times` packets that match and delivers all other packets.
    void drop_next(Match match, int times = 1) { fate_of_next(Disposition::drop, std::move(match), times); }
    void hold_next(Match match, int times = 1) { fate_of_next(Disposition::hold, std::move(match), times); }

    // Delivers until every link is empty. Held packets stay held.
    void run();
    // Puts the held packets that match on their links again, oldest first. It does not call the rule for them.
    void release(const Match& match = nullptr);
    // Puts a packet on a link, as an attacker or a very late duplicate would arrive.
    void inject(Flight flight);
    // Puts a packet into a process at once, without a link.
    void hand_over(Node to, Node sender, const Bytes& bytes, bool congested = false);
    // Advances time to the next timeout of any rank. Returns false if no rank has a timer.
    bool expire();
    void wait(Duration duration) { now_ += duration; }
    // Alternates run() and expire() until every tensor is done. Returns false if this takes more than `expiries`
    // timeouts.
    [[nodiscard]] bool finish(int expiries = 200);
    // As finish(), but with random faults and at most `steps` deliveries.
    [[nodiscard]] bool finish_among(const Faults& faults, std::uint32_t seed, long steps = 2'000'000);

    [[nodiscard]] bool done() const;
    [[nodiscard]] const std::vector<float>& output(unsigned rank, std::size_t tensor = 0) const;
    [[nodiscard]] const std::vector<std::int32_t>& integers(unsigned rank, std::size_t tensor = 0) const;
    // True if all workers have the same bits and every sum is right. The sum of integers is right modulo 2^32. A float
    // is the exact sum of the scaled integers, rounded once.
    [[nodiscard]] bool sums_are_right() const;
    [[nodiscard]] std::vector<std::uint32_t> result_bits() const;  // bits of all sums of worker 0

    [[nodiscard]] const protocol::Worker& worker(unsigned rank) const { return machine(worker_node(rank)).worker(); }
    // `node`: a worker, or the server.
    [[nodiscard]] const endpoint::ChannelMachine& machine(Node node) const { return rank_at(node)->process.machine(); }
    [[nodiscard]] const protocol::Server& server() const;
    [[nodiscard]] const protocol::Switch& rack(unsigned unit) const { return table_at(rack_node(unit)); }
    [[nodiscard]] const protocol::Switch& root() const { return table_at(root_node); }
    // The switch of a worker, the one above a switch of level 0, or the server.
    [[nodiscard]] Node above(Node node) const { return tree_.above(node); }
    // The two members of another job join the switch, which then accepts packets of that job. Returns the first, which
    // hosts the server.
    Node admit(const protocol::ChannelConfig& other, Node at);
    // Takes from a switch, or from the server, what it knows of fragments. Nobody notices.
    void forget(Node node);
    [[nodiscard]] std::uint32_t occupied() const;  // occupied aggregators of all switches
    [[nodiscard]] Time now() const { return now_; }
    // Every packet that reached the end of a link, in order.
    [[nodiscard]] const std::vector<Flight>& delivered() const { return delivered_; }
    [[nodiscard]] std::size_t count_delivered(const Match& match) const;
    [[nodiscard]] std::size_t bytes_into(Node node) const;
    void forget_delivered() { delivered_.clear(); }
    [[nodiscard]] const std::vector<protocol::WorkerEvent>& events(unsigned rank) const;
    [[nodiscard]] const NetworkConfig& config() const { return tree_.config(); }

  private:
    struct Job {
        std::vector<float> input;
        std::vector<float> output;
        std::vector<std::int32_t> integers_in;  // used instead of the floats
        std::vector<std::int32_t> integers_out;
        std::unique_ptr<protocol::Tensor> tensor;
    };
    struct RankNode {
        RankNode(const endpoint::ChannelMachineConfig& config, const wire::Address& address)
            : process(config, address) {}

        host::RankHost process;
        std::deque<Job> jobs{};
        std::vector<protocol::WorkerEvent> events{};
        Bytes empty{};  // its data before the first packet
        bool ready = false;
    };
    struct SwitchNode {
        explicit SwitchNode(const host::SwitchHostConfig& config) : process(config) {}

        host::SwitchHost process;
        Bytes empty{};
    };

    [[nodiscard]] bool integers_are_right(std::size_t tensor) const;
    void fate_of_next(Disposition disposition, Match match, int times);
    void make_node(Node node);
    void join();
    void collect();
    void drive(RankNode& rank, Node node);
    static void note(RankNode& rank, const endpoint::ChannelEvent& event);
    void take(Node from);
    void put(Flight flight);
    void deliver(Flight flight);
    void deliver_random(const Faults& faults, Random& random);
    void through_pipeline(Pipeline& pipeline, Flight& flight);
    [[nodiscard]] RankNode* rank_at(Node node) const;
    [[nodiscard]] const protocol::Switch& table_at(Node node) const {
        return switches_.at(node)->process.shard().table();
    }

    Tree tree_;
    std::vector<std::unique_ptr<RankNode>> ranks_;
    std::map<Node, std::unique_ptr<SwitchNode>> switches_;
    std::map<Node, std::unique_ptr<Pipeline>> pipelines_;  // instead of the switch of the same place
    std::unique_ptr<RankNode> server_;                     // nullptr: a switch behind pipelines serves
    host::PacketList out_;
    Bytes received_ = Bytes(ATP_MAX_PACKET_BYTES);  // the datagram that a process handles, with room to grow
    std::deque<Flight> messages_;
    Rule rule_;
    std::deque<Flight> links_;
    std::vector<Flight> held_;
    std::vector<Flight> delivered_;
    Time now_{};
};

}  // namespace atp::testing
