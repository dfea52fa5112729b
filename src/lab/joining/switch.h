// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/time.h"
#include "host/packet_list.h"
#include "host/switch_host.h"
#include "joining/network.h"

namespace atp::joining {

// A switch in the network.
class Switch {
  public:
    // `parent`: of no family for the last switch. `boot`: draws its nonce and its secret.
    Switch(const wire::Address& address, const wire::Address& parent, std::uint64_t boot);

    void handle_packet(Flight& flight, Network& network, Time now);
    void handle_report(const Flight& report, Network& network, Time now);
    void handle_timeout(Network& network, Time now);
    [[nodiscard]] Time poll_timeout() const { return host_.poll_timeout(); }
    [[nodiscard]] const wire::Address& address() const { return host_.address(); }

  private:
    void send(Network& network, Time now);

    host::SwitchHost host_;
    host::PacketList out_;
};

}  // namespace atp::joining
