// SPDX-License-Identifier: Apache-2.0
// Parameter servers without aggregation in switches, as in BytePS: every worker pushes its gradients and pulls the
// sums.
//
//   ps: one server, at the position that the scenario sets; it receives and sends the bytes of N workers.
//   ps-n: a server on each worker's host, for an equal part of every bucket. BytePS assigns whole tensors to servers
//     instead, which divides the load less evenly.
//
// Not modelled: time for additions beyond the time for copying (sim/scenario.h).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/systems/flow_job.h"

namespace atp::sim {

class ParameterServers final : public FlowJob {
  public:
    ParameterServers(const Shared& shared, ProgramId id, unsigned index);

  private:
    // The path from a worker to a server, or back.
    struct Transfer {
        unsigned rank = 0;
        unsigned server = 0;
        bool push = false;
    };
    // One server's part of a bucket. A worker begins the next iteration only after it has pulled all sums. All pushes
    // of an iteration therefore arrive before the first push of the next iteration.
    struct Part {
        unsigned pushed = 0;
        std::uint64_t word = 0;
    };

    void submit(unsigned rank, workload::Training::Buckets buckets, Time now) override;
    void on_message(std::uint32_t flow, const Message& message, Time now) override;
    void on_push(unsigned server, const Message& message, Time now);
    void on_pulled(unsigned rank, unsigned server, const Message& message, Time now);
    [[nodiscard]] bool local(unsigned rank, unsigned server) const {
        return servers_[server] == site().worker_hosts[rank];
    }
    [[nodiscard]] unsigned place(unsigned rank, unsigned server) const {
        return rank * static_cast<unsigned>(servers_.size()) + server;
    }
    [[nodiscard]] std::uint64_t bytes_of(std::uint32_t bucket, unsigned server) const;

    std::vector<NodeId> servers_;
    std::vector<Transfer> transfers_;            // by flow
    std::vector<std::uint32_t> pushes_;          // flows, by place()
    std::vector<std::uint32_t> pulls_;           // flows, by place()
    std::vector<std::vector<Part>> parts_;       // by server and bucket
    std::vector<std::vector<unsigned>> pulled_;  // number of parts, by rank and bucket
};

}  // namespace atp::sim
