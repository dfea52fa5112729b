// SPDX-License-Identifier: Apache-2.0
#include "net/udp_sender.h"

#include <fmt/format.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "net/ancillary_data.h"
#include "net/error_queue.h"

namespace atp::net {

UdpSender::UdpSender(int descriptor, const UdpConfig& config, UdpReport& report, UdpCounters& counters)
    : descriptor_(descriptor),
      v6_(config.local.family() == wire::Family::ipv6),
      reports_errors_(config.reports_errors),
      report_(report),
      counters_(counters),
      queue_(config.send_arena_bytes, config.send_packets) {}

Flush UdpSender::flush() {
    Flush flush;
    on_trial_ = 0;  // packets queued since the last flush may precede those on trial
    while (!queue_.empty()) {
        const int taken = transmit(plan());
        if (taken > 0) {
            account(static_cast<std::size_t>(taken), flush);
        } else if (!recover(-taken, flush)) {
            break;
        }
    }
    flush.overrun = queue_.settle();
    flush.waiting = queue_.waiting();
    counters_.overrun_packets += flush.overrun;
    return flush;
}

std::size_t UdpSender::plan() {
    const bool whole = report_.in_use(Feature::gso) && on_trial_ == 0;
    const bool alone = !report_.in_use(Feature::mmsg) || on_trial_ != 0;
    const MessageLimits limits{whole ? packets_per_message_ : 1, most_message_bytes};
    const std::size_t count = queue_.plan(std::span(messages_).first(alone ? 1 : messages_per_call), limits);
    for (std::size_t at = 0; at < count; ++at) {
        write_header(at);
    }
    return count;
}

void UdpSender::write_header(std::size_t at) {
    const SendQueue::Message& message = messages_[at];
    msghdr& header = headers_[at].msg_hdr;
    header.msg_name = const_cast<sockaddr*>(message.to->data());  // sendmsg() only reads it
    header.msg_namelen = message.to->size();
    header.msg_iov = message.parts.data();
    header.msg_iovlen = message.parts.size();
    header.msg_control = controls_[at].control.data();
    header.msg_controllen = control_bytes;
    ControlWriter control(header);
    if (message.packets > 1) control.add(SOL_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(message.packet_bytes));
    // ECT(0) is the default of the socket; only another mark needs a control message.
    if (report_.in_use(Feature::ecn) && message.ecn != wire::Ecn::capable_0) {
        const int traffic_class = static_cast<int>(message.ecn);
        control.add(v6_ ? IPPROTO_IPV6 : IPPROTO_IP, v6_ ? IPV6_TCLASS : IP_TOS, traffic_class);
    }
    if (message.to->is_multicast()) {
        const auto group = groups_.find(*message.to);
        if (group != groups_.end()) control.add(IPPROTO_IP, IP_PKTINFO, group->second);
    }
    control.finish();
}

// The kernel selects the interface that has the source address.
void UdpSender::reach_group(const wire::Address& group, const wire::Address& from) {
    sockaddr_in source{};
    std::memcpy(&source, from.data(), std::min<std::size_t>(from.size(), sizeof source));
    groups_[group] = {.ipi_ifindex = 0, .ipi_spec_dst = source.sin_addr, .ipi_addr = {}};
}

// Returns the number of messages that the kernel took, or -errno for the first message.
int UdpSender::transmit(std::size_t messages) {
    ++counters_.send_calls;
    if (report_.in_use(Feature::mmsg)) {
        const int taken = sendmmsg(descriptor_, headers_.data(), static_cast<unsigned>(messages), MSG_NOSIGNAL);
        return taken >= 0 ? taken : -errno;
    }
    return sendmsg(descriptor_, &headers_[0].msg_hdr, MSG_NOSIGNAL) >= 0 ? 1 : -errno;
}

void UdpSender::account(std::size_t messages, Flush& flush) {
    if (on_trial_ != 0) acquit();
    repeated_ = false;
    for (std::size_t at = 0; at < messages; ++at) {
        queue_.sent(messages_[at]);
        flush.packets += messages_[at].packets;
        flush.bytes += messages_[at].bytes;
        counters_.sent_packets += messages_[at].packets;
        counters_.sent_bytes += messages_[at].bytes;
    }
    counters_.sent_messages += messages;
}

// Handles a failed call. False: the buffer is full, so the flush ends.
bool UdpSender::recover(int code, Flush& flush) {
    if (code == EINTR) return true;
    if (code == EAGAIN || code == EWOULDBLOCK) return false;
    if (code == ENOSYS && report_.in_use(Feature::mmsg)) {
        report_.lose(Feature::mmsg, fmt::format("sendmmsg: {}", strerrordesc_np(code)));
        return true;
    }
    if (concerns_earlier_packet(code)) return true;
    if (messages_[0].packets > 1 && suspect_gso(code)) return true;
    refuse(code, flush);
    return true;
}

// True: send the same message again. If the second call fails too, the error concerns the message itself.
bool UdpSender::concerns_earlier_packet(int code) {
    if (!reports_errors_ || !may_concern_earlier_packet(code)) return false;
    repeated_ = !repeated_;
    return repeated_;
}

// True: the failure may be caused by GSO, and the packets are sent again in another form.
// EIO: the device cannot compute checksums, which GSO needs. EINVAL and EMSGSIZE: too many packets for this kernel,
// packets longer than the MTU, or another limit of GSO.
bool UdpSender::suspect_gso(int code) {
    const std::uint32_t packets = messages_[0].packets;
    if (code == EIO) {
        give_up_gso(describe_failure(code));
        return true;
    }
    if (code != EINVAL && code != EMSGSIZE) return false;
    if (packets > most_packets_before_6_9) {
        packets_per_message_ = most_packets_before_6_9;
        report_.set(Feature::gso, true, true, fmt::format("up to {} packets at once", packets_per_message_));
        return true;
    }
    on_trial_ = packets;
    on_trial_bytes_ = messages_[0].packet_bytes;
    charge_ = describe_failure(code);
    return true;
}

void UdpSender::refuse(int code, Flush& flush) {
    const SendQueue::Message& message = messages_[0];
    queue_.drop(message);
    flush.refused += message.packets;
    flush.refusal = code;
    if (code == EMSGSIZE && (!too_long_ || too_long_->bytes < message.packet_bytes)) {
        too_long_ =
            wire::SendError{.kind = wire::SendError::Kind::too_long, .to = *message.to, .bytes = message.packet_bytes};
    }
    counters_.refused_packets += message.packets;
    if (on_trial_ != 0) --on_trial_;
}

std::optional<wire::SendError> UdpSender::take_too_long() { return std::exchange(too_long_, std::nullopt); }

// The kernel took a packet on trial. If this packet is the last and shorter than the others, that proves nothing: it
// may be the only one that fits the MTU.
void UdpSender::acquit() {
    --on_trial_;
    if (messages_[0].packet_bytes == on_trial_bytes_) give_up_gso(std::exchange(charge_, {}));
}

std::string UdpSender::describe_failure(int code) const {
    const SendQueue::Message& message = messages_[0];
    return fmt::format("one message of {} packets of {} bytes to {}: {}", message.packets, message.packet_bytes,
                       to_string(*message.to), strerrordesc_np(code));
}

void UdpSender::give_up_gso(std::string why) {
    on_trial_ = 0;
    report_.lose(Feature::gso, std::move(why));
}

}  // namespace atp::net
