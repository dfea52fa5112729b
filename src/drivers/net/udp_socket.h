// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "net/descriptor.h"
#include "net/transport.h"
#include "net/udp_config.h"
#include "net/udp_receiver.h"
#include "net/udp_report.h"
#include "net/udp_sender.h"
#include "wire/address.h"
#include "wire/datagram.h"

namespace atp::net {

// A non-blocking UDP socket that sends and receives in batches.
//
// Ownership: owns the descriptor and all packet memory, allocated by open(). A received datagram is valid until the
//   next receive(). Bytes given to borrow() must not change until flush() returns. flush() copies the bytes that the
//   kernel did not take.
// Calling order, sending: reserve(), write the packet and commit(), once per packet; then flush(). If packets still
//   wait, flush() again when the socket is writable. Until then, more may be committed while there is room.
// Calling order, receiving: receive() until it returns 0. To forward a packet without a copy, rewrite it in place,
//   borrow() it, and flush() before the next receive().
// Threads: none. One thread drives one socket; if threads share a port, each opens its own socket
//   (UdpConfig::reuse_port).
// Failure: open() and rejoin_group() return an error. receive() fails only permanently. Sending never fails: it drops
//   and counts packets and falls back to simpler methods (see UdpSender).
class UdpSocket final : public Transport {
  public:
    [[nodiscard]] static Result<std::unique_ptr<UdpSocket>> open(const UdpConfig& config);
    // The sender and the receiver refer to members of this object, so it cannot move.
    UdpSocket(const UdpSocket&) = delete;
    UdpSocket& operator=(const UdpSocket&) = delete;

    // Room for a packet of up to `max_bytes`; empty: no room until a flush.
    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override {
        return sender_.queue().reserve(max_bytes);
    }
    // Queues the first `bytes` of the reserved room for `to`, which has this socket's family.
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn = wire::Ecn::capable_0) override {
        sender_.queue().commit(bytes, to, ecn);
    }
    // Queues the last packet committed or borrowed since flush() for a further destination. False: no room.
    [[nodiscard]] bool repeat(const wire::Address& to) override { return sender_.queue().repeat(to); }
    // Queues a packet in the caller's memory. False: no room.
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to,
                              wire::Ecn ecn = wire::Ecn::capable_0) override {
        return sender_.queue().borrow(bytes, to, ecn);
    }
    Flush flush() override { return sender_.flush(); }
    // See UdpSender.
    void reach_group(const wire::Address& group, const wire::Address& from) override {
        sender_.reach_group(group, from);
    }
    void forget_group(const wire::Address& group) override { sender_.forget_group(group); }
    // Only if local() is a group: leaves the group and joins it again. This sends a new report to bridges and routers,
    // unless another socket of this host is a member.
    [[nodiscard]] Result<void> rejoin_group();
    [[nodiscard]] std::uint32_t waiting() const override { return sender_.queue().waiting(); }

    // See UdpReceiver.
    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram> datagrams) override {
        return receiver_.receive(datagrams);
    }
    [[nodiscard]] bool has_more() const override { return receiver_.has_more(); }
    [[nodiscard]] bool drained() const override { return receiver_.drained(); }

    // Only with UdpConfig::reports_errors.
    [[nodiscard]] std::size_t take_errors(std::span<wire::SendError> errors) override;

    [[nodiscard]] const wire::Address& local() const override { return local_; }
    [[nodiscard]] int descriptor() const override { return descriptor_.number(); }
    [[nodiscard]] const UdpReport& report() const override { return report_; }
    [[nodiscard]] const UdpCounters& counters() const override { return counters_; }

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
