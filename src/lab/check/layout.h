// SPDX-License-Identifier: Apache-2.0
// The network of a configuration: its processes, the switches in the path between them, and the way of a packet. Every
// link can lose, reorder and duplicate packets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/configuration.h"
#include "protocol/membership.h"
#include "wire/address.h"

namespace atp::check {

enum class NodeKind : std::uint8_t { worker, server, aggregating_switch };

struct Node {
    NodeKind kind = NodeKind::worker;
    std::uint8_t job = 0;    // of a worker or server
    std::uint8_t index = 0;  // rank of a worker, number of a switch
    // Of a switch:
    std::uint8_t level = 0;
    bool in_path = false;  // it has no address
    bool is_pipeline = false;
};

// Workers of a rack join its switch. If that is in the path, they join the top switch, like direct workers, and like
// the switches of racks. The top switch hosts the servers, unless each has a process of its own.
class Layout {
  public:
    explicit Layout(const Configuration& configuration);

    [[nodiscard]] unsigned size() const { return static_cast<unsigned>(nodes_.size()); }
    [[nodiscard]] const Node& node(unsigned at) const { return nodes_[at]; }
    [[nodiscard]] const protocol::Membership& membership() const { return membership_; }  // equal for every job
    [[nodiscard]] std::string name(unsigned at) const;

    [[nodiscard]] unsigned worker(unsigned job, unsigned rank) const { return job * processes_per_job() + rank; }
    [[nodiscard]] unsigned top() const { return top_; }
    [[nodiscard]] bool has_server_processes() const { return has_server_processes_; }
    // The process that hosts the server of a job.
    [[nodiscard]] unsigned server(unsigned job) const { return has_server_processes_ ? worker(job, workers_) : top_; }
    // The switch that a worker or the switch of a rack joins.
    [[nodiscard]] unsigned above(unsigned at) const { return routes_[at].above; }

    [[nodiscard]] const wire::Address& address_of(unsigned process) const { return routes_[process].address; }
    [[nodiscard]] unsigned node_at(const wire::Address& address) const;
    // The node after `at` on the way of a packet from one process to another.
    [[nodiscard]] unsigned next(unsigned at, unsigned from, unsigned to) const;

  private:
    struct Route {
        wire::Address address;
        unsigned above = 0;          // itself: none
        std::vector<unsigned> path;  // switches in the path to it, the first one first
    };

    [[nodiscard]] unsigned processes_per_job() const { return workers_ + (has_server_processes_ ? 1 : 0); }
    void add_switches(const Configuration& configuration);
    void add_routes(const Configuration& configuration, const std::vector<unsigned>& racks,
                    const std::vector<unsigned>& path_to_top);

    protocol::Membership membership_;
    unsigned jobs_;
    unsigned workers_;
    bool has_server_processes_;
    std::vector<Node> nodes_;
    std::vector<Route> routes_;  // by node
    unsigned top_ = 0;
};

}  // namespace atp::check
