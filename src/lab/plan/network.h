// SPDX-License-Identifier: Apache-2.0
// The links of a cluster. Each carries in one direction what it carries in the other: gradients or pushes up, as many
// results or pulls down, so one direction stands for both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/cluster.h"

namespace atp::plan {

struct Link {
    enum class Kind : std::uint8_t {
        worker,  // of hosts alike: one stands for them all
        uplink,
        server,  // of a host that holds nothing but a job's server
        card,    // of the host that a switch's program runs on
    };
    Kind kind = Kind::worker;
    std::size_t at = 0;  // the switch that it hangs on; an uplink's lower end
    double bytes_per_s = 0;
};

// What one host has of one job.
struct Tenancy {
    bool worker = false;
    bool only_server = false;  // the job's one parameter server, where servers stand on workers' hosts
    double servers = 0;        // the share of ATP's servers that stand there

    friend bool operator==(const Tenancy&, const Tenancy&) = default;
};

// Hosts under one switch that all have the same: index `link` in links().
struct HostClass {
    std::size_t link = 0;
    std::size_t at = 0;
    std::vector<Tenancy> tenancies;  // by job
};

// Owns nothing of the cluster, which outlives it.
class Network {
  public:
    explicit Network(const Cluster& cluster);

    [[nodiscard]] const Cluster& cluster() const { return cluster_; }
    [[nodiscard]] const std::vector<Link>& links() const { return links_; }
    [[nodiscard]] const std::vector<HostClass>& hosts() const { return hosts_; }
    [[nodiscard]] std::size_t uplink(std::size_t at) const { return uplinks_[at]; }         // not of the root
    [[nodiscard]] std::size_t server_link(std::size_t job) const { return servers_[job]; }  // should it be dedicated
    [[nodiscard]] std::size_t card(std::size_t at) const { return cards_[at]; }             // of a switch that has one

    // The share of the job's servers on workers' hosts that stand below the switch itself.
    [[nodiscard]] double servers_below(std::size_t at, std::size_t job) const;

  private:
    void add_hosts(std::size_t at);
    std::size_t add_link(const Link& link);

    const Cluster& cluster_;
    std::vector<Link> links_;
    std::vector<HostClass> hosts_;
    std::vector<std::size_t> uplinks_;  // by switch
    std::vector<std::size_t> servers_;  // by job
    std::vector<std::size_t> cards_;    // by switch
};

}  // namespace atp::plan
