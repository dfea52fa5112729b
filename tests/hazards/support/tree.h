// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/time.h"
#include "endpoint/channel_machine.h"
#include "host/switch_host.h"
#include "protocol/congestion_window.h"
#include "protocol/membership.h"
#include "wire/address.h"

namespace atp::testing {

// One end of a link: a worker, the switch of a unit (rack), the switch in front of the server (root), or the server.
struct Node {
    enum class Kind : std::uint8_t { worker, rack, root, server };
    Kind kind = Kind::server;
    unsigned number = 0;  // rank of the worker, or number of the unit

    friend auto operator<=>(const Node&, const Node&) = default;
};

inline Node worker_node(unsigned rank) { return {Node::Kind::worker, rank}; }
inline Node rack_node(unsigned unit) { return {Node::Kind::rack, unit}; }
inline constexpr Node root_node{Node::Kind::root, 0};
inline constexpr Node server_node{Node::Kind::server, 0};

struct NetworkConfig {
    protocol::ChannelConfig channel{.job = 1, .token = 0x5eed, .lanes = 4, .window_log2 = 3, .audit = true};
    protocol::Membership membership = *protocol::Membership::star(2);
    bool racks_aggregate = true;       // false: level 0 only forwards
    bool root_aggregates = true;       // false: the switch of level 1 only forwards
    std::uint32_t aggregators = 1024;  // aggregators of each switch
    Duration ageing = std::chrono::milliseconds(500);
    protocol::CongestionConfig congestion;
    double scale = 1e8;
    bool int32_lanes = false;     // narrow integers are sent as int32
    bool bounded = false;         // workers send no lane with which a sum could leave 32 bits
    std::uint32_t pipelines = 0;  // racks whose switch is a pipeline, one bit each
    bool root_is_pipeline = false;
};

// Where the nodes of a scripted network are: how each process is configured, and which links a packet takes.
class Tree {
  public:
    explicit Tree(const NetworkConfig& config);

    [[nodiscard]] const NetworkConfig& config() const { return config_; }
    [[nodiscard]] const std::shared_ptr<const protocol::Membership>& membership() const { return membership_; }
    [[nodiscard]] bool has_root() const { return two_levels_; }
    [[nodiscard]] bool is_pipeline(Node node) const;
    // A switch behind pipelines serves, not a process of its own.
    [[nodiscard]] bool switch_serves() const { return top() == server_node; }
    // The switch of a worker, the one above a switch of level 0, or the server.
    [[nodiscard]] Node above(Node node) const;
    // The end of the link that a packet takes at `at`. Pipelines are in the path of a worker to its switch, and in that
    // of a switch to the one above it.
    [[nodiscard]] Node next(Node at, Node sender, Node receiver) const;

    [[nodiscard]] host::SwitchHostConfig config_of_switch(Node node) const;
    // Of a rank of this job, or of a job with another membership.
    [[nodiscard]] endpoint::ChannelMachineConfig config_of_rank(
        const protocol::ChannelConfig& channel, const std::shared_ptr<const protocol::Membership>& membership,
        unsigned rank, Node entrance) const;
    [[nodiscard]] endpoint::ChannelMachineConfig config_of_server() const;

  private:
    [[nodiscard]] Node top() const;
    [[nodiscard]] Node rack_of(Node worker) const;

    NetworkConfig config_;
    std::shared_ptr<const protocol::Membership> membership_;
    bool two_levels_;
};

// Each node has a port of one address.
[[nodiscard]] wire::Address address_of(Node node);
[[nodiscard]] Node node_at(const wire::Address& address);

}  // namespace atp::testing
