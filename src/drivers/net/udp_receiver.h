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
// Ownership: owns the memory of the datagrams, allocated at construction. A datagram is valid until the next receive().
// Calling order: receive() until it returns 0, or up to the limit of a round. After the limit, has_more() is true if
//   datagrams remain that the kernel has delivered already and will not announce again.
// Threads: none. The thread of the socket drives it.
// Failure: receive() returns an error that repeating the call is unlikely to fix (see Error::recoverable).
class UdpReceiver {
  public:
    // Borrows `report` and `counters` of the socket, which must outlive the receiver. The report must already state
    // whether GRO is in use.
    UdpReceiver(int descriptor, const UdpConfig& config, UdpReport& report, UdpCounters& counters);

    // Fills `datagrams` from the front and returns how many it filled; 0: no datagram waits. Makes at most one system
    // call, unless the call is interrupted or recvmmsg is missing.
    [[nodiscard]] Result<std::size_t> receive(std::span<wire::Datagram> datagrams);
    [[nodiscard]] bool has_more() const { return at_ < fetched_; }
    // The last call found fewer datagrams than it had room for.
    [[nodiscard]] bool drained() const { return !has_more() && fetched_ < slots_ && report_.in_use(Feature::mmsg); }

  private:
    static constexpr std::uint32_t most_messages = 64;
    static constexpr std::uint32_t most_message_bytes = 65'536;  // limit with GRO, and of one datagram
    // Room for a segment size, a traffic class and a count of drops.
    static constexpr std::size_t control_bytes = 3 * CMSG_SPACE(sizeof(int));

    // The content of one buffer: one datagram, or several of `segment_bytes` each. The last may be shorter.
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
    [[nodiscard]] int fetch_past_errors();
    void read_header(std::size_t at);
    [[nodiscard]] wire::Datagram cut();
    [[nodiscard]] std::size_t left_of_message() const;

    int descriptor_;
    bool reports_errors_;
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
    std::size_t fetched_ = 0;   // messages of the last system call
    std::size_t at_ = 0;        // index of the message that is being cut into datagrams
    std::uint32_t offset_ = 0;  // of the next datagram in that message, in bytes
    std::uint32_t drops_ = 0;   // the kernel's count of dropped packets, modulo 2^32
};

}  // namespace atp::net
