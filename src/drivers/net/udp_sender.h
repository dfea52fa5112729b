// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "net/send_queue.h"
#include "net/udp_config.h"
#include "net/udp_report.h"
#include "wire/address.h"
#include "wire/datagram.h"
#include "wire/send_error.h"

namespace atp::net {

// The result of one flush().
struct Flush {
    std::uint32_t packets = 0;  // taken by the kernel
    std::uint64_t bytes = 0;    // of these packets
    std::uint32_t refused = 0;  // packets that the kernel refuses permanently; dropped
    int refusal = 0;            // errno of the last refused packet; 0: none
    std::uint32_t overrun = 0;  // borrowed packets that the kernel did not take and the arena has no room for; dropped
    std::uint32_t waiting = 0;  // not 0: the kernel's buffer is full; flush() again when the socket is writable
};

// The sending half of a UDP socket: a queue, and as few system calls as the kernel allows.
//
// Ownership: owns the queue; SendQueue defines who owns packet memory. Borrows the descriptor.
// Calling order: that of SendQueue, with flush() in place of plan() to settle().
// Threads: none. The thread of the socket drives it.
// Failure: flush() never fails. A packet that the kernel refuses is dropped and counted, like a loss in the network. If
//   the kernel or the device lacks GSO or sendmmsg, the sender falls back to the next simpler method and changes the
//   report.
class UdpSender {
  public:
    // Devices, the loopback included, accept messages below 64 KiB with headers. The kernel cuts a longer message
    // before it reaches the device, and GSO gains nothing.
    static constexpr std::uint32_t most_message_bytes = 65'536 - 128;

    // Borrows `report` and `counters` of the socket, which must outlive the sender.
    UdpSender(int descriptor, const UdpConfig& config, UdpReport& report, UdpCounters& counters);

    [[nodiscard]] SendQueue& queue() { return queue_; }
    [[nodiscard]] const SendQueue& queue() const { return queue_; }
    Flush flush();
    // The longest packet that the kernel refused as too long since the last call; nullopt: none.
    [[nodiscard]] std::optional<wire::SendError> take_too_long();
    // Sends packets to this group on the interface that has the address `from`. IPv4 only.
    void reach_group(const wire::Address& group, const wire::Address& from);
    void forget_group(const wire::Address& group) { groups_.erase(group); }

  private:
    static constexpr std::size_t messages_per_call = 64;
    // Linux takes 128 datagrams per message since 6.9, and 64 before.
    static constexpr std::uint32_t most_packets = 128;
    static constexpr std::uint32_t most_packets_before_6_9 = 64;
    // Room for a segment size, a traffic class and a source address.
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
    [[nodiscard]] bool concerns_earlier_packet(int code);
    [[nodiscard]] bool suspect_gso(int code);
    void acquit();
    void refuse(int code, Flush& flush);
    [[nodiscard]] std::string describe_failure(int code) const;
    void give_up_gso(std::string why);

    int descriptor_;
    bool v6_;
    bool reports_errors_;
    UdpReport& report_;
    UdpCounters& counters_;
    SendQueue queue_;
    std::unordered_map<wire::Address, in_pktinfo> groups_;
    std::uint32_t packets_per_message_ = most_packets;
    // Packets of a failed message that are still to be sent one by one. If the kernel takes one of them, GSO was the
    // cause.
    std::uint32_t on_trial_ = 0;
    std::uint32_t on_trial_bytes_ = 0;  // length of each; the last may be shorter
    std::string charge_;                // description of the failure
    bool repeated_ = false;             // the last call failed with an error that may concern an earlier packet
    std::optional<wire::SendError> too_long_;
    std::array<SendQueue::Message, messages_per_call> messages_;
    std::array<mmsghdr, messages_per_call> headers_{};
    std::array<Header, messages_per_call> controls_{};
};

}  // namespace atp::net
