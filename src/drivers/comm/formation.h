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
#include "store/rendezvous.h"

namespace atp::comm {

struct Formed {
    Formation formation;
    std::vector<std::unique_ptr<net::UdpSocket>> sockets;  // by channel
    std::vector<ChannelPlan> plans;                        // likewise
};

// Waits for all ranks, up to the deadline. Fails with the rank or the switch that is missing or disagrees.
[[nodiscard]] Result<Formed> find_each_other(store::Rendezvous& rendezvous, const Options& options, Time deadline);

// The names under which ranks meet there: for Rendezvous::give_up().
[[nodiscard]] std::span<const std::string_view> names_of_formation();

}  // namespace atp::comm
