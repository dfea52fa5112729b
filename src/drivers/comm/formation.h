// SPDX-License-Identifier: Apache-2.0
// How ranks become a communicator: each looks at its way to its switch, all tell each other, rank 0 draws the job's
// number and token, and every rank computes the same plans from that.
#pragma once

#include <memory>
#include <vector>

#include "comm/channel_driver.h"
#include "comm/communicator.h"
#include "comm/options.h"
#include "net/udp_socket.h"
#include "store/store.h"

namespace atp::comm {

struct Formed {
    Formation formation;
    std::vector<std::unique_ptr<net::UdpSocket>> sockets;  // by channel
    std::vector<ChannelPlan> plans;                        // likewise
};

// Waits for all ranks, up to the deadline. Fails with the rank or the switch that is missing or disagrees.
[[nodiscard]] Result<Formed> find_each_other(store::Store& store, std::uint32_t rank, std::uint32_t world,
                                             const Options& options, Time deadline);

}  // namespace atp::comm
