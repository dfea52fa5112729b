// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "net/descriptor.h"
#include "net/udp_config.h"
#include "net/udp_receiver.h"
#include "net/udp_report.h"
#include "net/udp_sender.h"
#include "wire/address.h"
#include "wire/datagram.h"

namespace atp::net {

// A non-blocking UDP socket that sends and receives in batches.
//
// Calling order. To send: reserve(), write the packet, commit(), as often as there are packets; then flush(), which
// hands them to the kernel. Where flush() leaves some waiting, wait until the socket is writable and flush() again; in
// the meantime more may be committed as long as there is room. To receive: receive() until it yields nothing.
// A packet that was received may be sent on without a copy: rewrite it in place, borrow() it, flush() before the next
// receive().
// Owns: the descriptor, and all packet memory, claimed when it is opened. What receive() yields is good until the next
// receive(). What borrow() was given must stay as it is until flush() returns, which copies what the kernel did not
// take. Threads: one. Threads that share a port open a socket each (UdpConfig::reuse_port). Failure: open() says why;
// receive() only fails for good; sending never does, for it drops, counts and falls back instead (see UdpSender).
class UdpSocket {
  public:
    [[nodiscard]] static Result<std::unique_ptr<UdpSocket>> open(const UdpConfig& config);
    // Its halves hold references to what it keeps: it stays where it was made.
    UdpSocket(const UdpSocket&) = delete;
    UdpSocket& operator=(const UdpSocket&) = delete;

    // Room for a packet of up to `max_bytes`; empty where there is none until something was flushed.
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) { return sender_.queue().reserve(max_bytes); }
    // The first `bytes` of what was reserved go to `to`, of this socket's family.
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn = wire::Ecn::capable_0) {
        sender_.queue().commit(bytes, to, ecn);
    }
    // The packet that was committed or borrowed last, since the last flush(), also to somebody else. False: no room.
    [[nodiscard]] bool repeat(const wire::Address& to) { return sender_.queue().repeat(to); }
    // A packet in memory of the caller's. False: no room.
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to,
                              wire::Ecn ecn = wire::Ecn::capable_0) {
        return sender_.queue().borrow(bytes, to, ecn);
    }
    Flush flush() { return sender_.flush(); }
    // See UdpSender.
    void reach_group(const wire::Address& group, const wire::Address& from) { sender_.reach_group(group, from); }
    // Of a member of a group: leaves it and joins it again, which tells bridges and routers once more who listens,
    // unless somebody else on this host is in it meanwhile.
    [[nodiscard]] Result<void> rejoin_group();
    [[nodiscard]] std::uint32_t waiting() const { return sender_.queue().waiting(); }

    // See UdpReceiver.
    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram> datagrams) {
        return receiver_.receive(datagrams);
    }
    [[nodiscard]] bool has_more() const { return receiver_.has_more(); }

    [[nodiscard]] const wire::Address& local() const { return local_; }
    [[nodiscard]] int descriptor() const { return descriptor_.number(); }
    [[nodiscard]] const UdpReport& report() const { return report_; }
    [[nodiscard]] const UdpCounters& counters() const { return counters_; }

  private:
    UdpSocket(const UdpConfig& config, Descriptor descriptor, UdpReport report, const wire::Address& local);

    Descriptor descriptor_;
    wire::Address local_;
    wire::Address member_at_;
    UdpReport report_;
    UdpCounters counters_;
    UdpSender sender_;
    UdpReceiver receiver_;
};

}  // namespace atp::net
