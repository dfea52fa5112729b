// SPDX-License-Identifier: Apache-2.0
// Kernels, devices and sandboxes that lack a feature: every packet still arrives once and in order, and the report
// names the features that the socket gave up.
#include <gmock/gmock.h>
#include <netinet/udp.h>

#include <cerrno>

#include "net/udp_socket.h"
#include "system_calls.h"
#include "udp_fixture.h"

namespace atp::test {
namespace {

using net::Feature;
using net::FeatureState;
using net::Flush;
using net::UdpConfig;
using net::UdpSocket;
using testing::HasSubstr;

class UdpFallback : public OnLoopback {
  protected:
    // Sends this number of packets and expects each packet once and in order.
    static void exchange(UdpSocket& from, UdpSocket& to, std::size_t count, std::size_t bytes = 500) {
        std::vector<std::string> packets;
        for (std::size_t at = 0; at < count; ++at) {
            packets.push_back(packet(at, bytes));
            ASSERT_TRUE(put(from, packets.back(), to.local()));
        }
        const Flush flush = from.flush();
        EXPECT_EQ(flush.packets, count);
        EXPECT_EQ(flush.refused, 0U);
        EXPECT_EQ(bytes_of(receive(to, count)), packets);
        std::array<wire::Datagram, 1> more;
        EXPECT_EQ(to.receive(more).value_or(1), 0U) << "a packet came twice";
    }
    static void expect_lost(const UdpSocket& socket, Feature feature, const std::string& because) {
        const FeatureState& state = socket.report()[feature];
        EXPECT_TRUE(state.missing());
        EXPECT_THAT(state.text, HasSubstr(because));
        EXPECT_THAT(socket.report().to_string(), HasSubstr(std::string(to_string(feature)) + ": off, requested: "));
    }

    WithSystemCalls calls_;
};
INSTANTIATE_TEST_SUITE_P(Families, UdpFallback, both_families, family_name);

TEST_P(UdpFallback, WithoutGsoPacketsAreSentSingly) {
    system_calls.option_level = SOL_UDP;
    system_calls.option_name = UDP_SEGMENT;
    system_calls.option_fails = ENOPROTOOPT;
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    exchange(*from, *to, 40);
    EXPECT_EQ(system_calls.segmented, 0U);
    expect_lost(*from, Feature::gso, "UDP_SEGMENT");
}

TEST_P(UdpFallback, WithoutGroPacketsArriveSingly) {
    system_calls.option_level = SOL_UDP;
    system_calls.option_name = UDP_GRO;
    system_calls.option_fails = ENOPROTOOPT;
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    exchange(*from, *to, 40);
    EXPECT_EQ(to->counters().received_messages, 40U);
    expect_lost(*to, Feature::gro, "UDP_GRO");
}

TEST_P(UdpFallback, WithoutMarksThePacketsArrive) {
    const bool v6 = GetParam() == wire::Family::ipv6;
    system_calls.option_level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
    system_calls.option_name = v6 ? IPV6_RECVTCLASS : IP_RECVTOS;
    system_calls.option_fails = ENOPROTOOPT;
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    exchange(*from, *to, 3);
    expect_lost(*to, Feature::ecn, v6 ? "IPV6_TCLASS" : "IP_TOS");
}

TEST_P(UdpFallback, WithoutFragmentControlPacketsArrive) {
    const bool v6 = GetParam() == wire::Family::ipv6;
    system_calls.option_level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
    system_calls.option_name = v6 ? IPV6_DONTFRAG : IP_MTU_DISCOVER;
    system_calls.option_fails = EOPNOTSUPP;
    const auto from = open_or_fail(config());
    exchange(*from, *from, 3);
    expect_lost(*from, Feature::no_fragments, "MTU_DISCOVER");
}

TEST_P(UdpFallback, WithoutSendmmsgPacketsAreSentBySendmsg) {
    system_calls.sendmmsg_fails = ENOSYS;
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    const std::uint32_t revision = from->report().revision();
    exchange(*from, *to, 40);
    exchange(*from, *to, 40);
    EXPECT_EQ(system_calls.sendmmsg, 1U) << "asked once";
    EXPECT_EQ(system_calls.sendmsg, 2U);
    EXPECT_EQ(from->report().revision(), revision + 1);
    expect_lost(*from, Feature::mmsg, "sendmmsg");
}

TEST_P(UdpFallback, WithoutRecvmmsgPacketsAreReadByRecvmsg) {
    system_calls.recvmmsg_fails = ENOSYS;
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    exchange(*from, *to, 40);
    EXPECT_EQ(system_calls.recvmmsg, 1U) << "asked once";
    EXPECT_GT(system_calls.recvmsg, 0U);
    expect_lost(*to, Feature::mmsg, "recvmmsg");
}

TEST_P(UdpFallback, WithoutChecksumOffloadGsoIsDisabled) {
    system_calls.segmented_fails = EIO;
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    exchange(*from, *to, 100);
    exchange(*from, *to, 100);
    EXPECT_LE(system_calls.segmented, 2U) << "tried again after it was given up";
    expect_lost(*from, Feature::gso, "Input/output error");
}

TEST_P(UdpFallback, FailureOfGsoDuringACallResendsTheRestSingly) {
    const auto from = open_or_fail(config());
    const auto first = open_or_fail(config());
    const auto second = open_or_fail(config());
    for (std::size_t at = 0; at < 10; ++at) {
        if (at == 0) {
            ASSERT_TRUE(put(*from, packet(at, 300), first->local()));
        }
        ASSERT_TRUE(put(*from, packet(at, 300), second->local()));
    }
    system_calls.segmented_fails = EIO;
    EXPECT_EQ(from->flush().packets, 11U);
    EXPECT_EQ(receive(*first, 1).size(), 1U);
    EXPECT_EQ(receive(*second, 10).size(), 10U);
    expect_lost(*from, Feature::gso, "10 packets of 300 bytes");
}

TEST_P(UdpFallback, LimitOf64SegmentsIsRespected) {
    system_calls.segments_limit = 64;
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    exchange(*from, *to, 200, 100);
    EXPECT_TRUE(from->report().in_use(Feature::gso));
    EXPECT_THAT(from->report()[Feature::gso].text, HasSubstr("64"));
    EXPECT_EQ(from->counters().sent_messages, 4U);
}

// A real failure: without checksums Linux segments no messages and fails the send with EINVAL.
TEST_P(UdpFallback, FailureOfSegmentationIsProvedBySingleSends) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    const int off = 1;
    ASSERT_EQ(setsockopt(from->descriptor(), SOL_SOCKET, SO_NO_CHECK, &off, sizeof off), 0);
    if (GetParam() == wire::Family::ipv6) {  // IPv6 refuses datagrams without a checksum by default
        ASSERT_EQ(setsockopt(from->descriptor(), SOL_UDP, UDP_NO_CHECK6_TX, &off, sizeof off), 0);
        ASSERT_EQ(setsockopt(to->descriptor(), SOL_UDP, UDP_NO_CHECK6_RX, &off, sizeof off), 0);
    }
    exchange(*from, *to, 100);
    expect_lost(*from, Feature::gso, "Invalid argument");
    const std::uint64_t segmented = system_calls.segmented;
    exchange(*from, *to, 100);
    EXPECT_EQ(system_calls.segmented, segmented);
}

// If the buffer is full during the socket's trial of segmentation, later successful sends prove nothing about it.
TEST_P(UdpFallback, TrialInterruptedByAFullBufferIsRepeated) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    std::vector<std::string> packets;
    for (std::size_t at = 0; at < 5; ++at) {
        packets.push_back(packet(at, 100));
        ASSERT_TRUE(put(*from, packets.back(), to->local()));
    }
    system_calls.segmented_fails = EINVAL;
    system_calls.messages_until_full = 0;
    EXPECT_EQ(from->flush().waiting, 5U);
    system_calls.segmented_fails = 0;
    system_calls.messages_until_full = -1;
    EXPECT_EQ(from->flush().packets, 5U);
    EXPECT_EQ(from->counters().sent_messages, 1U);
    EXPECT_TRUE(from->report().in_use(Feature::gso));
    EXPECT_EQ(bytes_of(receive(*to, 5)), packets);
}

TEST_P(UdpFallback, InterruptedCallsAreRepeated) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    system_calls.interruptions = 3;
    exchange(*from, *to, 5);
    system_calls.interruptions = 3;
    std::array<wire::Datagram, 1> none;
    EXPECT_EQ(to->receive(none).value_or(1), 0U);
    EXPECT_EQ(system_calls.interruptions, 0);
    EXPECT_TRUE(from->report().in_use(Feature::gso));
}

TEST_P(UdpFallback, TooLongPacketIsRefusedAndTheOthersArrive) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    ASSERT_TRUE(put(*from, packet(0, 500), to->local()));
    ASSERT_TRUE(put(*from, packet(1, 65'530), to->local()));
    ASSERT_TRUE(put(*from, packet(2, 500), to->local()));
    const Flush flush = from->flush();
    EXPECT_EQ(flush.packets, 2U);
    EXPECT_EQ(flush.refused, 1U);
    EXPECT_EQ(flush.refusal, EMSGSIZE);
    EXPECT_EQ(from->counters().refused_packets, 1U);
    EXPECT_EQ(bytes_of(receive(*to, 2)), (std::vector{packet(0, 500), packet(2, 500)}));
    EXPECT_TRUE(from->report().in_use(Feature::gso));
}

TEST_P(UdpFallback, MessageRefusedByAFirewallIsDroppedAndGsoIsKept) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    for (std::size_t at = 0; at < 5; ++at) {
        ASSERT_TRUE(put(*from, packet(at, 100), to->local()));
    }
    system_calls.segmented_fails = EPERM;
    const Flush flush = from->flush();
    EXPECT_EQ(flush.refused, 5U);
    EXPECT_EQ(flush.refusal, EPERM);
    EXPECT_EQ(flush.waiting, 0U);
    system_calls.segmented_fails = 0;
    exchange(*from, *to, 5);
    EXPECT_EQ(system_calls.segmented, 2U);
}

TEST_P(UdpFallback, RefusedBufferIsReportedWithTheRemedy) {
    system_calls.option_level = SOL_SOCKET;
    system_calls.option_name = SO_RCVBUFFORCE;
    system_calls.option_fails = EPERM;
    UdpConfig greedy = config();
    greedy.receive_buffer_bytes = 1 << 30;
    const auto socket = open_or_fail(greedy);
    expect_lost(*socket, Feature::receive_buffer, "net.core.rmem_max");
    EXPECT_THAT(socket->report()[Feature::receive_buffer].text, HasSubstr("1073741824 requested"));
}

TEST_P(UdpFallback, GrantedBufferIsReportedAsRead) {
    UdpConfig modest = config();
    modest.receive_buffer_bytes = modest.send_buffer_bytes = 65'536;
    const auto socket = open_or_fail(modest);
    EXPECT_TRUE(socket->report().in_use(Feature::receive_buffer));
    EXPECT_THAT(socket->report()[Feature::send_buffer].text, HasSubstr("65536"));
}

TEST_P(UdpFallback, BusyPollingIsReportedGrantedOrRefused) {
    UdpConfig busy = config();
    busy.busy_poll_us = 20;
    const auto granted = open_or_fail(busy);
    EXPECT_TRUE(granted->report()[Feature::busy_poll].requested);
    system_calls.option_level = SOL_SOCKET;
    system_calls.option_name = SO_BUSY_POLL;
    system_calls.option_fails = EPERM;
    expect_lost(*open_or_fail(busy), Feature::busy_poll, "SO_BUSY_POLL");
    EXPECT_FALSE(open_or_fail(config())->report()[Feature::busy_poll].requested);
}

}  // namespace
}  // namespace atp::test
