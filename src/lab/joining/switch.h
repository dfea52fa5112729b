// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/time.h"
#include "endpoint/shard_machine.h"
#include "joining/network.h"

namespace atp::joining {

// The process of one switch with one shard.
class Switch {
  public:
    // `parent`: of no family for the last switch. `boot`: draws its nonce and its secret.
    Switch(const wire::Address& address, const wire::Address& parent, std::uint64_t boot);

    void handle_packet(Flight& flight, Network& network, Time now);
    void handle_report(const Flight& report, Network& network, Time now);
    void handle_timeout(Network& network, Time now);
    [[nodiscard]] Time poll_timeout() const { return machine_.poll_timeout(); }
    [[nodiscard]] const wire::Address& address() const { return address_; }
    [[nodiscard]] const endpoint::ShardMachine& machine() const { return machine_; }

  private:
    void send(Network& network, Time now);

    wire::Address address_;
    endpoint::ShardMachine machine_;
    PacketList out_;
};

}  // namespace atp::joining
