// SPDX-License-Identifier: Apache-2.0
// How ranks form a communicator: they gather facts and open sockets. From the facts of all ranks, control::JobPlanner
// makes the same plan on each. docs/spec/formation.md is normative.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/channel_driver.h"
#include "comm/host_formation.h"
#include "comm/options.h"
#include "crypto/tenant_key.h"
#include "net/transport.h"
#include "store/rendezvous.h"
#include "switchd/node.h"
#include "wire/control.h"

namespace atp::comm {

struct Formed {
    wire::JobPlan plan;
    std::string layout;                                       // for the log
    std::vector<std::unique_ptr<net::Transport>> sockets;     // one per channel plan
    std::vector<ChannelPlan> channels;                        // one per channel, then one per gather channel, if any
    std::vector<std::unique_ptr<switchd::SwitchNode>> nodes;  // which this rank runs for the job
};

// Before a rank uses the network: what its options do not name yet, rank 0 names.
[[nodiscard]] Result<void> prepare_network(store::Rendezvous& rendezvous, const wire::RankFacts& first,
                                           Options& options, Time deadline);

// Agrees with the other ranks that speak for their hosts on the job and its plan, opens this rank's sockets, and starts
// the servers and switches that it runs. Waits for all of these ranks up to the deadline. The error names the rank or
// the switch that is missing or disagrees. `key`: of the ranks' tenant; nullptr: they have none.
[[nodiscard]] Result<Formed> form_over_network(store::Rendezvous& rendezvous, const Options& options,
                                               const Meeting& meeting, std::shared_ptr<const crypto::TenantKey> key,
                                               Time deadline);

}  // namespace atp::comm
