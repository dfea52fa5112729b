// SPDX-License-Identifier: Apache-2.0
#include "net/udp_receiver.h"

#include <fmt/format.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/ancillary_data.h"
#include "net/error_queue.h"

namespace atp::net {
namespace {

// Calls of one receive(), if errors of earlier packets fail them.
constexpr int most_attempts = 8;

constexpr std::uint32_t round_up(std::uint32_t bytes, std::uint32_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

// With GRO, every slot must hold the longest possible message, even if datagrams are short. The kernel truncates a
// message that does not fit, and that can remove many datagrams.
UdpReceiver::UdpReceiver(int descriptor, const UdpConfig& config, UdpReport& report, UdpCounters& counters)
    : descriptor_(descriptor),
      reports_errors_(config.reports_errors),
      report_(report),
      counters_(counters),
      max_packet_bytes_(config.max_packet_bytes),
      slot_bytes_(report.in_use(Feature::gro) ? most_message_bytes
                                              : round_up(std::max(config.max_packet_bytes, 1U), cache_line_bytes)),
      slots_(std::clamp(config.receive_arena_bytes / slot_bytes_, 1U, most_messages)),
      arena_(allocate_aligned(std::size_t{slots_} * slot_bytes_)),
      messages_(slots_),
      headers_(slots_),
      parts_(slots_),
      controls_(slots_),
      names_(slots_) {
    const std::uint32_t room = report.in_use(Feature::gro) ? slot_bytes_ : config.max_packet_bytes;
    for (std::size_t at = 0; at < slots_; ++at) {
        parts_[at] = {arena_.get() + at * slot_bytes_, room};
        headers_[at].msg_hdr.msg_iov = &parts_[at];
        headers_[at].msg_hdr.msg_iovlen = 1;
        headers_[at].msg_hdr.msg_name = &names_[at];
        headers_[at].msg_hdr.msg_control = controls_[at].bytes.data();
    }
    prepare(slots_);
}

Result<std::size_t> UdpReceiver::receive(std::span<wire::Datagram> datagrams) {
    if (!has_more()) {
        int count = fetch_past_errors();
        while (count == -EINTR || (count == -ENOSYS && report_.in_use(Feature::mmsg))) {
            if (count == -ENOSYS) report_.lose(Feature::mmsg, fmt::format("recvmmsg: {}", strerrordesc_np(ENOSYS)));
            count = fetch_past_errors();
        }
        if (count == -EAGAIN || count == -EWOULDBLOCK) return std::size_t{0};
        if (count < 0) return fail_with_errno(Operation::receive, -count);
    }
    std::size_t filled = 0;
    // Answers to the datagrams of one message leave as one message if they are handled together.
    const auto fits = [&] { return offset_ != 0 || left_of_message() <= datagrams.size() - filled; };
    while (filled < datagrams.size() && has_more() && (filled == 0 || fits())) {
        datagrams[filled++] = cut();
    }
    return filled;
}

// Restores the header fields that the kernel overwrites when it receives.
void UdpReceiver::prepare(std::size_t messages) {
    for (std::size_t at = 0; at < messages; ++at) {
        headers_[at].msg_hdr.msg_namelen = sizeof(sockaddr_in6);
        headers_[at].msg_hdr.msg_controllen = control_bytes;
        headers_[at].msg_hdr.msg_flags = 0;
    }
}

// Returns the number of messages received, or -errno.
int UdpReceiver::fetch() {
    prepare(std::exchange(fetched_, 0));
    at_ = 0;
    offset_ = 0;
    ++counters_.receive_calls;
    int count = 0;
    if (report_.in_use(Feature::mmsg)) {
        count = recvmmsg(descriptor_, headers_.data(), slots_, 0, nullptr);
    } else {
        const ssize_t bytes = recvmsg(descriptor_, &headers_[0].msg_hdr, 0);
        count = bytes < 0 ? -1 : 1;
        headers_[0].msg_len = static_cast<unsigned>(bytes);
    }
    if (count < 0) return -errno;
    fetched_ = static_cast<std::size_t>(count);
    for (std::size_t at = 0; at < fetched_; ++at) {
        read_header(at);
    }
    counters_.received_messages += fetched_;
    return count;
}

// An error of an earlier packet fails one call. take_errors() returns it; here it only hides what arrived.
int UdpReceiver::fetch_past_errors() {
    int count = fetch();
    for (int attempt = 1; attempt < most_attempts && reports_errors_ && may_concern_earlier_packet(-count); ++attempt) {
        count = fetch();
    }
    return reports_errors_ && may_concern_earlier_packet(-count) ? -EAGAIN : count;
}

void UdpReceiver::read_header(std::size_t at) {
    const msghdr& header = headers_[at].msg_hdr;
    Message& message = messages_[at];
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the generic type of the call
    message.from = wire::Address::from(reinterpret_cast<const sockaddr*>(&names_[at]), header.msg_namelen);
    message.bytes = headers_[at].msg_len;
    message.segment_bytes = message.bytes;
    message.ecn = wire::Ecn::not_capable;
    message.truncated = (header.msg_flags & MSG_TRUNC) != 0;
    for_each_control(header, [&](int level, int type, const ControlValue& value) {
        if (level == SOL_UDP && type == UDP_GRO) {
            message.segment_bytes = static_cast<std::uint32_t>(value.as<int>());
        } else if (level == IPPROTO_IP && type == IP_TOS) {
            message.ecn = static_cast<wire::Ecn>(value.as<std::uint8_t>() & wire::ecn_mask);
        } else if (level == IPPROTO_IPV6 && type == IPV6_TCLASS) {
            message.ecn = static_cast<wire::Ecn>(value.as<unsigned>() & wire::ecn_mask);
        } else if (level == SOL_SOCKET && type == SO_RXQ_OVFL) {
            const auto drops = value.as<std::uint32_t>();
            counters_.dropped_packets += drops - drops_;
            drops_ = drops;
        }
    });
}

// Datagrams of the message that is being cut.
std::size_t UdpReceiver::left_of_message() const {
    const Message& message = messages_[at_];
    if (message.segment_bytes == 0) return 1;
    return (message.bytes - offset_ + message.segment_bytes - 1) / message.segment_bytes;
}

wire::Datagram UdpReceiver::cut() {
    const Message& message = messages_[at_];
    const std::uint32_t left = message.bytes - offset_;
    const bool last = message.segment_bytes == 0 || left <= message.segment_bytes;
    const std::uint32_t whole = last ? left : message.segment_bytes;
    const std::uint32_t bytes = std::min(whole, max_packet_bytes_);
    const wire::Datagram datagram{.bytes = {arena_.get() + at_ * slot_bytes_ + offset_, bytes},
                                  .capacity = last ? slot_bytes_ - offset_ : whole,
                                  .from = &message.from,
                                  .ecn = message.ecn,
                                  .truncated = bytes < whole || (last && message.truncated)};
    offset_ += whole;
    if (last) {
        ++at_;
        offset_ = 0;
    }
    ++counters_.received_packets;
    counters_.received_bytes += bytes;
    counters_.truncated_packets += datagram.truncated ? 1 : 0;
    counters_.congested_packets += datagram.ecn == wire::Ecn::congested ? 1 : 0;
    return datagram;
}

}  // namespace atp::net
