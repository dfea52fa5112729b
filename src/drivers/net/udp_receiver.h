// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "net/aligned_bytes.h"
#include "net/udp_config.h"
#include "net/udp_report.h"
#include "wire/address.h"
#include "wire/datagram.h"

namespace atp::net {

// The receiving half of a UDP socket.
//
// Calling order: receive() again and again, until it yields nothing, or for as many packets as a round may take; in the
// latter case has_more() tells that datagrams are at hand which the kernel, having handed them over, will not announce.
// Owns: the memory that datagrams point into, claimed once; each receive() takes back what the one before it yielded.
// Threads: one, the same as the socket's.
// Failure: an error that no later call is likely to mend (see Error::recoverable).
class UdpReceiver {
  public:
    // `report` and `counters` are the socket's, and outlive this. GRO must be on or off by now.
    UdpReceiver(int descriptor, const UdpConfig& config, UdpReport& report, UdpCounters& counters);

    // Fills `datagrams` from the front, with one system call at most; how many it filled, 0 where none is waiting.
    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram> datagrams);
    [[nodiscard]] bool has_more() const { return at_ < fetched_; }

  private:
    static constexpr std::uint32_t most_messages = 64;
    static constexpr std::uint32_t most_message_bytes = 65'536;  // of GRO; no datagram is longer either
    // Of a segment size, a traffic class and a count of drops.
    static constexpr std::size_t control_bytes = 3 * CMSG_SPACE(sizeof(int));

    // What one buffer holds: a datagram, or several of `segment_bytes` each.
    struct Message {
        wire::Address from;
        std::uint32_t bytes = 0;
        std::uint32_t segment_bytes = 0;
        wire::Ecn ecn = wire::Ecn::not_capable;
        bool truncated = false;
    };
    struct Control {
        alignas(cmsghdr) std::array<std::byte, control_bytes> bytes;
    };

    void prepare(std::size_t messages);
    [[nodiscard]] int fetch();
    void read_header(std::size_t at);
    [[nodiscard]] wire::Datagram cut();

    int descriptor_;
    UdpReport& report_;
    UdpCounters& counters_;
    std::uint32_t max_packet_bytes_;
    std::uint32_t slot_bytes_;
    std::uint32_t slots_;
    AlignedBytes arena_;
    std::vector<Message> messages_;
    std::vector<mmsghdr> headers_;
    std::vector<iovec> parts_;
    std::vector<Control> controls_;
    std::vector<sockaddr_in6> names_;
    std::size_t fetched_ = 0;   // messages
    std::size_t at_ = 0;        // the message being cut into datagrams
    std::uint32_t offset_ = 0;  // in it
    std::uint32_t drops_ = 0;   // as the kernel counts them, modulo 2^32
};

}  // namespace atp::net
