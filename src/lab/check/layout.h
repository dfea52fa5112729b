// SPDX-License-Identifier: Apache-2.0
// The network of a configuration: its nodes, and the next node of a packet. Every link can lose, reorder and duplicate
// packets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/configuration.h"
#include "endpoint/routing.h"
#include "protocol/membership.h"

namespace atp::check {

enum class NodeKind : std::uint8_t { worker, server, aggregating_switch };

struct Node {
    NodeKind kind = NodeKind::worker;
    std::uint8_t job = 0;    // of a worker or server
    std::uint8_t index = 0;  // rank of a worker, number of a switch
    std::uint8_t level = 0;  // of a switch
};

class Layout {
  public:
    explicit Layout(const Configuration& configuration);

    [[nodiscard]] unsigned size() const { return static_cast<unsigned>(nodes_.size()); }
    [[nodiscard]] const Node& node(unsigned at) const { return nodes_[at]; }
    [[nodiscard]] const protocol::Membership& membership() const { return membership_; }  // equal for every job
    [[nodiscard]] unsigned worker(unsigned job, unsigned rank) const { return job * (workers_ + 1) + rank; }
    [[nodiscard]] unsigned server(unsigned job) const { return job * (workers_ + 1) + workers_; }
    [[nodiscard]] std::string name(unsigned at) const;
    // In the path of workers that address the switch behind it.
    [[nodiscard]] bool is_in_path(unsigned at) const { return in_path_ && at == unit_switch_[0]; }

    // The next node towards the server of `job`.
    [[nodiscard]] unsigned up(unsigned from, unsigned job) const;
    // The next nodes of a packet that goes down from a server or switch.
    void down(unsigned from, unsigned job, const endpoint::Downward& packet, std::vector<unsigned>& to) const;

  private:
    class Receivers;

    // The switch that a worker's packets reach first.
    [[nodiscard]] unsigned first_switch_of(unsigned rank) const;

    protocol::Membership membership_;
    unsigned jobs_;
    unsigned workers_;
    bool single_unit_;
    bool in_path_;
    std::vector<Node> nodes_;
    std::vector<unsigned> unit_switch_;  // the switch next to each unit's workers
    unsigned server_switch_ = 0;
};

}  // namespace atp::check
