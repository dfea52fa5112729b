// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "emulation/delayed_packets.h"
#include "emulation/port_table.h"
#include "net/transport.h"
#include "net/udp_config.h"

namespace atp::emulation {

struct EmulatedTransportConfig {
    PortTableConfig ports;
    std::uint32_t held_packets = 4096;  // maximum number of packets that wait for their departure
    std::uint32_t number = 0;           // of the transport; transports with different numbers lose different packets
};

// A UDP socket with an emulated link to each peer. A link has a rate, a queue, congestion marks and loss. Control
// messages pass at once: experiments are about gradients and results.
//
// Ownership: owns the socket, the ports and all packets that wait. Everything is allocated by open().
// Calling order: as net::Transport.
// Threads: none.
// Failure: as net::Transport. A packet without room to wait is dropped and counted (`unheld` in the report).
class EmulatedTransport final : public net::Transport {
  public:
    [[nodiscard]] static Result<std::unique_ptr<net::Transport>> open(const net::UdpConfig& udp,
                                                                      const EmulatedTransportConfig& config);

    EmulatedTransport(std::unique_ptr<net::Transport> socket, const EmulatedTransportConfig& config);

    [[nodiscard]] std::span<std::byte> reserve(std::size_t max_bytes) override;
    void commit(std::size_t bytes, const wire::Address& to, wire::Ecn ecn) override;
    [[nodiscard]] bool borrow(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn) override;
    [[nodiscard]] bool repeat(const wire::Address& to) override;
    net::Flush flush() override { return socket_->flush(); }
    [[nodiscard]] std::uint32_t waiting() const override { return socket_->waiting(); }
    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram> datagrams) override;
    [[nodiscard]] bool has_more() const override { return socket_->has_more(); }
    [[nodiscard]] Time poll_timeout() const override { return held_.next_departure(); }
    void reach_group(const wire::Address& group, const wire::Address& from) override {
        socket_->reach_group(group, from);
    }
    void forget_group(const wire::Address& group) override { socket_->forget_group(group); }
    // Each port belongs to one peer, so there is no port to a group.
    [[nodiscard]] bool reaches_groups() const override { return false; }
    [[nodiscard]] const wire::Address& local() const override { return socket_->local(); }
    [[nodiscard]] int descriptor() const override { return socket_->descriptor(); }
    [[nodiscard]] const net::UdpReport& report() const override { return socket_->report(); }
    [[nodiscard]] const net::UdpCounters& counters() const override { return socket_->counters(); }
    // "ports": counters of each peer's port; "unheld".
    [[nodiscard]] std::string report_parts() const override;

  private:
    [[nodiscard]] bool admits(wire::Datagram& datagram, Time now);
    void send(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn);
    void send_copy(std::span<const std::byte> bytes, const wire::Address& to, wire::Ecn ecn);

    std::unique_ptr<net::Transport> socket_;
    PortTable ports_;
    DelayedPackets held_;
    net::AlignedBytes reserved_;
    std::span<const std::byte> last_;  // for repeat()
    wire::Ecn last_ecn_ = wire::Ecn::not_capable;
    wire::Address from_;        // of the due packet that receive() returned last
    std::uint64_t unheld_ = 0;  // packets dropped because held_packets waited, or because the socket was full
};

// "emulated_ports": the configuration, for the report of the node.
[[nodiscard]] std::string report_of(const PortTableConfig& config);

}  // namespace atp::emulation
