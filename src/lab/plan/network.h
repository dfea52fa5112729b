// SPDX-License-Identifier: Apache-2.0
// The links of a cluster. Each link carries equal traffic in both directions: gradients or pushes up, results or pulls
// down. One direction therefore represents both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/cluster.h"

namespace atp::plan {

struct Link {
    enum class Kind : std::uint8_t {
        worker,  // one link represents all hosts with the same jobs
        uplink,
        server,  // of a host that runs only the server of one job
        card,    // of the host that runs the switch program
    };
    Kind kind = Kind::worker;
    std::size_t at = 0;  // the switch next to the host; for an uplink, its lower switch
    double bytes_per_s = 0;
};

// The roles of one job on one host.
struct Tenancy {
    bool worker = false;
    bool only_server = false;  // runs the job's single parameter server, which shares the host of a worker
    double servers = 0;        // share of the job's ATP servers on this host

    friend bool operator==(const Tenancy&, const Tenancy&) = default;
};

// Hosts with equal tenancies below one switch. `link`: index into links().
struct HostClass {
    std::size_t link = 0;
    std::size_t at = 0;
    std::vector<Tenancy> tenancies;  // by job
};

// Ownership: borrows the cluster, which must outlive this object.
class Network {
  public:
    explicit Network(const Cluster& cluster);

    [[nodiscard]] const Cluster& cluster() const { return cluster_; }
    [[nodiscard]] const std::vector<Link>& links() const { return links_; }
    [[nodiscard]] const std::vector<HostClass>& hosts() const { return hosts_; }
    [[nodiscard]] std::size_t uplink(std::size_t at) const { return uplinks_[at]; }  // `at` is not the root
    // Link of the host that runs only the server of the job.
    [[nodiscard]] std::size_t server_link(std::size_t job) const { return servers_[job]; }
    [[nodiscard]] std::size_t card(std::size_t at) const { return cards_[at]; }  // only of a switch with a card

    // The share of the job's servers on hosts of workers directly below the switch.
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
