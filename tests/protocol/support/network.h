// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/worker.h"
#include "support/packets.h"
#include "support/pipeline.h"
#include "support/random.h"

namespace atp::testing {

// One end of a link: a worker, the switch of a unit (rack), the switch in front of the server (root), or the server.
struct Node {
    enum class Kind : std::uint8_t { worker, rack, root, server };
    Kind kind = Kind::server;
    unsigned number = 0;  // rank of the worker, or number of the unit

    friend bool operator==(const Node&, const Node&) = default;
};

inline Node worker_node(unsigned rank) { return {Node::Kind::worker, rank}; }
inline Node rack_node(unsigned unit) { return {Node::Kind::rack, unit}; }
inline constexpr Node root_node{Node::Kind::root, 0};
inline constexpr Node server_node{Node::Kind::server, 0};

// A packet on one link.
struct Flight {
    Node from;
    Node to;
    Bytes bytes;
    bool congested = false;  // the queue of the link marks the packet CE
    NextPass next_pass{};    // of a packet between two passes of a pipeline

    [[nodiscard]] atp_header header() const { return header_in(bytes); }
    [[nodiscard]] bool is(atp_type type) const { return header().type == type; }
    [[nodiscard]] bool is(atp_type type, std::uint32_t seq) const { return is(type) && header().seq == seq; }
    [[nodiscard]] bool has(atp_flag flag) const { return (header().flags & flag) != 0; }
};

struct NetworkConfig {
    protocol::ChannelConfig channel{.job = 1, .token = 0x5eed, .lanes = 4, .window_log2 = 3, .audit = true};
    protocol::Membership membership = *protocol::Membership::star(2);
    bool racks_aggregate = true;  // false: level 0 only forwards
    bool has_root = true;  // if there are several units or a direct one, a switch of level 1 is in front of the server
    std::uint32_t aggregators = 1024;  // aggregators of each switch
    Duration ageing = std::chrono::milliseconds(500);
    protocol::CongestionConfig congestion;
    Duration repeat_interval = std::chrono::milliseconds(1);
    double scale = 1e8;
    bool int32_lanes = false;     // narrow integers travel as int32
    bool bounded = false;         // workers send no lane with which a sum could leave 32 bits
    std::uint32_t pipelines = 0;  // racks whose switch is a pipeline, one bit each
    bool root_is_pipeline = false;
};

struct Faults {
    double loss = 0;
    double duplication = 0;
    double reordering = 0;  // share of deliveries that take a random packet instead of the oldest
    double marking = 0;     // share of packets that get a CE mark
};

// A network of the real state machines. The test's script decides what happens to every packet.
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
    Network(const Network&) = delete;  // the server borrows the membership
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
    void duplicate_next(Match match, int times = 1) { fate_of_next(Disposition::duplicate, std::move(match), times); }

    // Delivers until every link is empty. Held packets stay held.
    void run();
    // Puts the held packets that match on their links again, oldest first. It does not call the rule for them.
    void release(const Match& match = nullptr);
    // Puts a packet on a link, as an attacker or a very late duplicate would arrive.
    void inject(Flight flight);
    // Advances time to the next timeout of any worker. Returns false if no worker has a timer.
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

    [[nodiscard]] protocol::Worker& worker(unsigned rank) { return *workers_.at(rank)->machine; }
    [[nodiscard]] protocol::Server& server() { return *server_; }
    [[nodiscard]] protocol::Switch& rack(unsigned unit) { return *racks_.at(unit); }
    [[nodiscard]] protocol::Switch& root() { return *root_; }
    // Replaces the server by one without state, as a restart does. Switches and workers do not notice.
    void replace_server();
    [[nodiscard]] std::uint32_t occupied() const;  // occupied aggregators of all switches
    [[nodiscard]] Time now() const { return now_; }
    [[nodiscard]] std::size_t held() const { return held_.size(); }
    // Every packet that reached the end of a link, in order.
    [[nodiscard]] const std::vector<Flight>& delivered() const { return delivered_; }
    [[nodiscard]] std::size_t count_delivered(const Match& match) const;
    [[nodiscard]] std::size_t bytes_into(Node node) const;
    void forget_delivered() { delivered_.clear(); }
    [[nodiscard]] const std::vector<protocol::WorkerEvent>& events(unsigned rank) const;
    [[nodiscard]] const NetworkConfig& config() const { return config_; }

  private:
    class Receivers;
    struct Job {
        std::vector<float> input;
        std::vector<float> output;
        std::vector<std::int32_t> integers_in;  // used instead of the floats
        std::vector<std::int32_t> integers_out;
        std::unique_ptr<protocol::Tensor> tensor;
    };
    struct WorkerNode {
        std::unique_ptr<protocol::Worker> machine;
        std::deque<Job> jobs;
        std::vector<protocol::WorkerEvent> events;
    };

    [[nodiscard]] bool integers_are_right(std::size_t tensor) const;
    void fate_of_next(Disposition disposition, Match match, int times);
    void collect();
    void put(Flight flight);
    void deliver(Flight flight);
    void deliver_random(const Faults& faults, Random& random);
    void through_switch(protocol::Switch& machine, Flight& flight);
    void through_pipeline(Pipeline& pipeline, Flight& flight);
    [[nodiscard]] Pipeline* pipeline_at(Node node);
    void send_down(Node from, const Bytes& bytes, bool congested);
    [[nodiscard]] protocol::Switch* switch_at(Node node);
    [[nodiscard]] Node above(Node node) const;
    [[nodiscard]] bool has_rack(unsigned unit) const { return racks_.at(unit) != nullptr; }
    [[nodiscard]] protocol::WorkerConfig worker_config(unsigned rank) const;

    NetworkConfig config_;
    std::vector<std::unique_ptr<WorkerNode>> workers_;
    std::vector<std::unique_ptr<protocol::Switch>> racks_;  // null: the unit is direct, or racks only forward
    std::unique_ptr<protocol::Switch> root_;
    // Instead of the switch of the same place.
    std::vector<std::unique_ptr<Pipeline>> rack_pipelines_;
    std::unique_ptr<Pipeline> root_pipeline_;
    std::unique_ptr<protocol::Server> server_;
    Rule rule_;
    std::deque<Flight> links_;
    std::vector<Flight> held_;
    std::vector<Flight> delivered_;
    Time now_{};
};

}  // namespace atp::testing
