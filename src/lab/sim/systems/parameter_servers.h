// SPDX-License-Identifier: Apache-2.0
// Parameter servers without a switch's help, as in BytePS: every worker pushes its gradients and pulls the sums.
//
//   ps    one server, where the scenario puts it: N workers' bytes in, as many out.
//   ps-n  a server on each worker's host, for an equal part of every bucket. BytePS hands out whole tensors instead,
//         which balances worse.
//
// Left out: adding beyond what copying takes (sim/scenario.h).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/systems/flow_job.h"

namespace atp::sim {

class ParameterServers final : public FlowJob {
  public:
    ParameterServers(const Shared& shared, ProgramId id, unsigned index);

  private:
    // From a worker to a server, or back.
    struct Way {
        unsigned rank = 0;
        unsigned server = 0;
        bool push = false;
    };
    // One server's part of a bucket. All its pushes of an iteration come before the first of the next: a worker goes on
    // when it has pulled everything.
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
    std::vector<Way> ways_;                      // by flow
    std::vector<std::uint32_t> pushes_;          // flows by place
    std::vector<std::uint32_t> pulls_;           // likewise
    std::vector<std::vector<Part>> parts_;       // by server and bucket
    std::vector<std::vector<unsigned>> pulled_;  // parts, by rank and bucket
};

}  // namespace atp::sim
