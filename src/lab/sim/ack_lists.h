// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/time.h"
#include "control/branch.h"
#include "control/channel_key.h"
#include "endpoint/ack_gatherer.h"
#include "protocol/channel.h"
#include "protocol/switch.h"
#include "sim/fabric.h"
#include "sim/network.h"

namespace atp::sim {

// The lists of ACKs that one switch makes for one job, by the machine of the product (docs/protocol.md#ack-lists).
//
// A switch of the product handles packets in batches. Here, a batch has the packets of one moment if the server is on
// the switch, and otherwise those of 1 us.
//
// Ownership: owns the gatherer, and a branch for each channel. Borrows the site.
// Calling order: open() for each incarnation. take() for each packet that goes down; send() if is_full(), and at
//   poll_timeout().
// Threads: none. Failure: none.
class AckLists {
  public:
    // nullptr: a switch of the product makes no lists here.
    [[nodiscard]] static std::unique_ptr<AckLists> make(const Fabric& fabric, const Site& site, NodeId at);

    // Drops the ACKs that wait.
    void open(const std::vector<protocol::ChannelConfig>& channels);
    // The switch restarts: ACKs that wait are lost.
    void clear();

    // True if the packet waits in a list. `table` has handled it.
    [[nodiscard]] bool take(const protocol::PacketBuffer& packet, const protocol::Switch& table, Time now);
    [[nodiscard]] bool is_full() const { return gatherer_.is_full(); }
    // `expects_more(channel)`: the server has READYs of fragments that are not complete.
    using ExpectsMore = std::function<bool(unsigned channel)>;
    void send(Network& network, ProgramId program, const ExpectsMore& expects_more, Time now);
    [[nodiscard]] Time poll_timeout() const { return std::min(batch_ends_, gatherer_.poll_timeout()); }

    [[nodiscard]] const endpoint::AckGathererCounters& counters() const { return gatherer_.counters(); }

  private:
    AckLists(const Site& site, NodeId at, bool hosts_server) : site_(site), at_(at), hosts_server_(hosts_server) {}

    [[nodiscard]] control::Branch branch_of(const protocol::ChannelConfig& channel) const;
    [[nodiscard]] const control::Branch* find(const control::ChannelKey& key) const;

    const Site& site_;
    NodeId at_;
    bool hosts_server_;
    Time batch_ends_ = never;
    std::vector<control::Branch> branches_;  // by channel
    endpoint::AckGatherer gatherer_{endpoint::usual_ack_hold};
};

}  // namespace atp::sim
