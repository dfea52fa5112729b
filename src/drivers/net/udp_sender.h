// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "net/send_queue.h"
#include "net/udp_config.h"
#include "net/udp_report.h"
#include "wire/address.h"
#include "wire/datagram.h"

namespace atp::net {

// What one flush() did.
struct Flush {
    std::uint32_t packets = 0;  // that the kernel took
    std::uint64_t bytes = 0;
    std::uint32_t refused = 0;  // that it refuses for good; dropped
    int refusal = 0;            // the errno of the last of them; 0: none
    std::uint32_t overrun = 0;  // borrowed ones that it did not take and that found no room in the arena; dropped
    std::uint32_t waiting = 0;  // not 0: its buffer is full; wait until the socket is writable, then flush() again
};

// The sending half of a UDP socket: a queue, and as few system calls as the kernel allows.
//
// Calling order, ownership of packet memory: SendQueue's, with flush() for plan() to settle().
// Threads: one, the same as the socket's.
// Failure: none that stops it. A packet that the kernel refuses is dropped and counted, as the network might have done;
// a way of sending that the kernel or the device turns out to lack is given up for the next simpler one, and reported.
class UdpSender {
  public:
    // `report` and `counters` are the socket's, and outlive this.
    UdpSender(int descriptor, const UdpConfig& config, UdpReport& report, UdpCounters& counters);

    [[nodiscard]] SendQueue& queue() { return queue_; }
    [[nodiscard]] const SendQueue& queue() const { return queue_; }
    Flush flush();
    // What is sent to this group leaves where packets from this address of the host leave. IPv4 alone.
    void reach_group(const wire::Address& group, const wire::Address& from);

  private:
    static constexpr std::size_t messages_per_call = 64;
    // Linux takes 64 datagrams a message, since 6.9 twice as many.
    static constexpr std::uint32_t most_packets = 128;
    static constexpr std::uint32_t most_packets_before_6_9 = 64;
    // A whole message with its headers must stay below the 64 KiB that devices accept, or the kernel cuts it up before
    // the device sees it, loopback included, and the gain is gone.
    static constexpr std::uint32_t most_message_bytes = 65'536 - 128;
    // Of a segment size, a traffic class and a way out.
    static constexpr std::size_t control_bytes =
        CMSG_SPACE(sizeof(std::uint16_t)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(in_pktinfo));

    struct Header {
        alignas(cmsghdr) std::array<std::byte, control_bytes> control;
    };

    [[nodiscard]] std::size_t plan();
    void write_header(std::size_t at);
    [[nodiscard]] int transmit(std::size_t messages);
    void account(std::size_t messages, Flush& flush);
    [[nodiscard]] bool recover(int code, Flush& flush);
    [[nodiscard]] bool doubt_gso(int code);
    void acquit();
    void refuse(int code, Flush& flush);
    [[nodiscard]] std::string describe_failure(int code) const;
    void give_up_gso(std::string why);

    int descriptor_;
    bool v6_;
    UdpReport& report_;
    UdpCounters& counters_;
    SendQueue queue_;
    std::unordered_map<wire::Address, in_pktinfo> groups_;
    std::uint32_t packets_per_message_ = most_packets;
    // Packets of a message that failed as a whole, to be sent one by one: if they pass, GSO is to blame, not they.
    std::uint32_t on_trial_ = 0;
    std::uint32_t on_trial_bytes_ = 0;  // of each but the last
    std::string charge_;                // what failed
    std::array<SendQueue::Message, messages_per_call> messages_;
    std::array<mmsghdr, messages_per_call> headers_{};
    std::array<Header, messages_per_call> controls_{};
};

}  // namespace atp::net
