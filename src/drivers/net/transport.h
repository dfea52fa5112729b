// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/udp_report.h"
#include "net/udp_sender.h"
#include "wire/address.h"
#include "wire/datagram.h"
#include "wire/outbox.h"
#include "wire/send_error.h"

namespace atp::net {

// Sends and receives datagrams in batches: a UDP socket, or a UDP socket behind emulated links.
//
// Ownership: owns the descriptor and all packet memory. A received datagram is valid until the next receive().
// Calling order, sending: as wire::Outbox, then flush(). If packets still wait, flush() again when the descriptor is
//   writable.
// Calling order, receiving: when the descriptor is readable, or at poll_timeout(), receive() until it returns 0.
// Threads: none. One thread drives one transport.
// Failure: receive() fails only permanently. Sending never fails: it drops and counts packets.
class Transport : public wire::Outbox {
  public:
    virtual Flush flush() = 0;
    // Packets queued and not yet taken by the kernel.
    [[nodiscard]] virtual std::uint32_t waiting() const = 0;
    [[nodiscard]] virtual Result<std::size_t> receive(std::span<wire::Datagram> datagrams) = 0;
    // Datagrams remain that no readable descriptor will announce.
    [[nodiscard]] virtual bool has_more() const = 0;
    // The last receive() took all that the kernel had, so a further one would only find that out. False: unknown.
    [[nodiscard]] virtual bool drained() const { return false; }
    // When receive() is due although the descriptor is not readable; `never`: a socket alone delays nothing.
    [[nodiscard]] virtual Time poll_timeout() const { return never; }

    // Fills `errors` from the front with reports about packets sent earlier, and returns how many it filled. Reports
    // remain only if it filled all. They are due when the loop announces `Ready::failed`, and after a flush() that
    // refused packets.
    [[nodiscard]] virtual std::size_t take_errors(std::span<wire::SendError> /*errors*/) { return 0; }

    // See UdpSender.
    virtual void reach_group(const wire::Address& group, const wire::Address& from) = 0;
    virtual void forget_group(const wire::Address& group) = 0;
    // False: packets to a group would not arrive.
    [[nodiscard]] virtual bool reaches_groups() const { return true; }

    [[nodiscard]] virtual const wire::Address& local() const = 0;
    [[nodiscard]] virtual int descriptor() const = 0;
    [[nodiscard]] virtual const UdpReport& report() const = 0;
    [[nodiscard]] virtual const UdpCounters& counters() const = 0;
    // Additions to the report of a switch: one JSON object; empty: none.
    [[nodiscard]] virtual std::string report_parts() const { return {}; }
};

}  // namespace atp::net
