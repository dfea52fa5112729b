// SPDX-License-Identifier: Apache-2.0
// Each method of sending and receiving. The tests count kernel calls and arrivals to check that the socket used the
// method.
#include "net/udp_socket.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>

#include "support/fails.h"
#include "system_calls.h"
#include "udp_fixture.h"

namespace atp::test {
namespace {

using net::Feature;
using net::Flush;
using net::UdpConfig;
using net::UdpSocket;
using wire::Address;
using wire::Datagram;
using wire::Ecn;

class Udp : public OnLoopback {
  protected:
    WithSystemCalls calls_;
};
INSTANTIATE_TEST_SUITE_P(Families, Udp, both_families, family_name);

std::vector<std::string> put_packets(UdpSocket& from, const wire::Address& to, std::size_t count, std::size_t bytes) {
    std::vector<std::string> packets;
    for (std::size_t at = 0; at < count; ++at) {
        packets.push_back(packet(at, bytes));
        EXPECT_TRUE(put(from, packets.back(), to));
    }
    return packets;
}

TEST_P(Udp, FortySegmentsAreSentAndReceivedAsOneMessage) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    const auto packets = put_packets(*from, to->local(), 40, 1456);
    const Flush flush = from->flush();
    EXPECT_EQ(flush.packets, 40U);
    EXPECT_EQ(flush.bytes, 40U * 1456);
    EXPECT_EQ(flush.waiting, 0U);
    EXPECT_EQ(system_calls.sendmmsg, 1U);
    EXPECT_EQ(system_calls.sendmsg, 0U);
    EXPECT_EQ(system_calls.segmented, 1U);
    EXPECT_EQ(from->counters().sent_messages, 1U);

    const auto arrivals = receive(*to, 40);
    EXPECT_EQ(bytes_of(arrivals), packets);
    EXPECT_EQ(arrivals[39].from, from->local());
    EXPECT_LT(to->counters().received_messages, 40U) << "GRO coalesced nothing";
    EXPECT_LT(system_calls.recvmmsg, 40U);
    EXPECT_EQ(to->counters().received_packets, 40U);
    EXPECT_EQ(to->counters().received_bytes, 40U * 1456);
    EXPECT_EQ(from->report().revision(), open_or_fail(config())->report().revision()) << "nothing was given up";
}

TEST_P(Udp, WithoutGroSegmentsArriveOneByOne) {
    UdpConfig without = config();
    without.gro = false;
    without.max_packet_bytes = 1500;
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(without);
    const auto packets = put_packets(*from, to->local(), 40, 1456);
    from->flush();
    EXPECT_EQ(system_calls.segmented, 1U);
    EXPECT_EQ(bytes_of(receive(*to, 40)), packets);
    EXPECT_EQ(to->counters().received_messages, 40U);
    EXPECT_LT(system_calls.recvmmsg, 10U) << "recvmmsg takes many at once";
    EXPECT_FALSE(to->report()[Feature::gro].requested);
}

TEST_P(Udp, WithoutGsoPacketsAreMessagesOfOneCall) {
    UdpConfig without = config();
    without.gso = false;
    const auto from = open_or_fail(without);
    const auto to = open_or_fail(config());
    const auto packets = put_packets(*from, to->local(), 40, 100);
    EXPECT_EQ(from->flush().packets, 40U);
    EXPECT_EQ(system_calls.segmented, 0U);
    EXPECT_EQ(system_calls.sendmmsg, 1U);
    EXPECT_EQ(from->counters().sent_messages, 40U);
    EXPECT_EQ(bytes_of(receive(*to, 40)), packets);
}

TEST_P(Udp, PlainSocketsMakeOneCallPerPacket) {
    UdpConfig plain = config();
    plain.gso = plain.gro = plain.mmsg = false;
    const auto from = open_or_fail(plain);
    const auto to = open_or_fail(plain);
    const auto packets = put_packets(*from, to->local(), 10, 100);
    EXPECT_EQ(from->flush().packets, 10U);
    EXPECT_EQ(bytes_of(receive(*to, 10)), packets);
    EXPECT_EQ(system_calls.sendmsg, 10U);
    EXPECT_EQ(system_calls.sendmmsg, 0U);
    EXPECT_EQ(system_calls.recvmmsg, 0U);
    EXPECT_EQ(system_calls.recvmsg, 10U);
    EXPECT_EQ(from->counters().send_calls, 10U);
}

TEST_P(Udp, GsoAndGroWorkWithoutMmsg) {
    UdpConfig single = config();
    single.mmsg = false;
    const auto from = open_or_fail(single);
    const auto to = open_or_fail(single);
    const auto packets = put_packets(*from, to->local(), 40, 1000);
    EXPECT_EQ(from->flush().packets, 40U);
    EXPECT_EQ(bytes_of(receive(*to, 40)), packets);
    EXPECT_EQ(system_calls.sendmsg, 1U);
    EXPECT_EQ(system_calls.segmented, 1U);
    EXPECT_LT(system_calls.recvmsg, 40U);
}

TEST_P(Udp, MixedSizesArriveUnchanged) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    std::vector<std::string> packets;
    for (const std::size_t bytes :
         {1U, 0U, 1U, 7U, 7U, 7U, 3U, 3U, 1456U, 1456U, 11U, 9000U, 9000U, 0U, 65'000U, 48U}) {
        packets.push_back(packet(packets.size(), bytes));
        ASSERT_TRUE(put(*from, packets.back(), to->local()));
    }
    EXPECT_EQ(from->flush().packets, packets.size());
    EXPECT_EQ(bytes_of(receive(*to, packets.size())), packets);
}

TEST_P(Udp, LongestMessageStaysWithinTheLimitOfDevices) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    // Eleven packets would fit a legal datagram's payload, but with their headers exceed what a device accepts.
    const auto packets = put_packets(*from, to->local(), 22, 5954);
    EXPECT_EQ(from->flush().packets, 22U);
    EXPECT_EQ(from->counters().sent_messages, 3U);
    EXPECT_EQ(system_calls.sendmmsg, 1U);
    EXPECT_EQ(bytes_of(receive(*to, 22)), packets);
    EXPECT_LE(to->counters().received_messages, 4U) << "devices cut messages";
}

TEST_P(Udp, AlternatingPeersGetOneMessageEach) {
    const auto from = open_or_fail(config());
    const auto first = open_or_fail(config());
    const auto second = open_or_fail(config());
    std::vector<std::string> packets;
    for (std::size_t at = 0; at < 20; ++at) {
        packets.push_back(packet(at, 500));
        ASSERT_TRUE(put(*from, packets.back(), first->local()));
        ASSERT_TRUE(from->repeat(second->local()));
    }
    EXPECT_EQ(from->flush().packets, 40U);
    EXPECT_EQ(system_calls.sendmmsg, 1U);
    EXPECT_EQ(from->counters().sent_messages, 2U);
    EXPECT_EQ(bytes_of(receive(*first, 20)), packets);
    EXPECT_EQ(bytes_of(receive(*second, 20)), packets);
}

TEST_P(Udp, ReceivedPacketsAreRewrittenInPlaceAndForwardedWithoutACopy) {
    const auto worker = open_or_fail(config());
    const auto middle = open_or_fail(config());
    const auto server = open_or_fail(config());
    put_packets(*worker, middle->local(), 12, 200);
    worker->flush();
    std::array<wire::Datagram, 12> batch;
    std::size_t got = 0;
    while (got < batch.size()) {
        const auto received = middle->receive(std::span(batch).subspan(got));
        ASSERT_TRUE(received);
        if (*received == 0) {
            ASSERT_TRUE(wait_readable(middle->descriptor()));
        }
        // One receive at a time, because the next one reuses the memory.
        for (std::size_t at = got; at < got + *received; ++at) {
            batch[at].bytes[0] = std::byte{'!'};
            ASSERT_TRUE(middle->borrow(batch[at].bytes, server->local()));
        }
        middle->flush();
        got += *received;
    }
    const auto arrivals = receive(*server, 12);
    ASSERT_EQ(arrivals.size(), 12U);
    for (std::size_t at = 0; at < arrivals.size(); ++at) {
        std::string expected = packet(at, 200);
        expected[0] = '!';
        EXPECT_EQ(arrivals[at].bytes, expected);
        EXPECT_EQ(arrivals[at].from, middle->local());
    }
}

TEST_P(Udp, SmallBatchTakesAMessageInPortionsWithOneCall) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    const auto packets = put_packets(*from, to->local(), 20, 300);
    from->flush();
    ASSERT_TRUE(wait_readable(to->descriptor()));
    std::array<wire::Datagram, 8> batch;
    std::vector<std::size_t> portions;
    do {
        const auto received = to->receive(batch);
        ASSERT_TRUE(received);
        portions.push_back(*received);
    } while (to->has_more());
    EXPECT_THAT(portions, testing::ElementsAre(8, 8, 4));
    EXPECT_EQ(system_calls.recvmmsg, 1U);
    const auto none = to->receive(batch);
    ASSERT_TRUE(none);
    EXPECT_EQ(*none, 0U);
}

// Answers to a message leave as one message if its datagrams are handled in one batch.
TEST_P(Udp, BatchEndsBeforeAMessageThatDoesNotFit) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    for (int message = 0; message < 2; ++message) {
        put_packets(*from, to->local(), 5, 300);
        from->flush();
    }
    ASSERT_TRUE(wait_readable(to->descriptor()));
    std::array<wire::Datagram, 8> batch;
    for (int message = 0; message < 2; ++message) {
        const auto received = to->receive(batch);
        ASSERT_TRUE(received);
        EXPECT_EQ(*received, 5U);
    }
    EXPECT_EQ(system_calls.recvmmsg, 1U);
    EXPECT_TRUE(to->drained()) << "the call had room for more than two messages";
}

TEST_P(Udp, SocketIsDrainedOnlyAfterItsLastDatagram) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    put_packets(*from, to->local(), 2, 300);
    from->flush();
    ASSERT_TRUE(wait_readable(to->descriptor()));
    std::array<wire::Datagram, 1> batch;
    ASSERT_TRUE(to->receive(batch));
    EXPECT_FALSE(to->drained());
    ASSERT_TRUE(to->receive(batch));
    EXPECT_TRUE(to->drained());
}

TEST_P(Udp, SlotOfASingleDatagramTakesACoalescedMessageNext) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    for (const std::size_t count : {1U, 30U, 1U, 30U}) {
        const auto packets = put_packets(*from, to->local(), count, 200);
        from->flush();
        const auto arrivals = receive(*to, count);
        EXPECT_EQ(bytes_of(arrivals), packets);
        for (const Arrival& arrival : arrivals) {
            EXPECT_EQ(arrival.ecn, Ecn::capable_0) << "no room was left for the mark beside the segment size";
        }
    }
}

TEST_P(Udp, OnlyTheLastDatagramOfAMessageMayGrow) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    put_packets(*from, to->local(), 3, 48);
    from->flush();
    ASSERT_TRUE(wait_readable(to->descriptor()));
    std::array<wire::Datagram, 8> batch;
    ASSERT_EQ(to->receive(batch).value_or(0), 3U);
    EXPECT_EQ(batch[0].capacity, 48U);
    EXPECT_EQ(batch[1].capacity, 48U);
    ASSERT_GE(batch[2].capacity, 1456U);
    std::memset(batch[2].bytes.data(), 'z', batch[2].capacity);
    EXPECT_EQ(std::memcmp(batch[1].bytes.data(), packet(1, 48).data(), 48), 0);
}

TEST_P(Udp, MarksArriveAndAreCounted) {
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(config());
    ASSERT_TRUE(put(*from, "aa", to->local()));
    ASSERT_TRUE(put(*from, "bb", to->local(), Ecn::congested));
    ASSERT_TRUE(put(*from, "cc", to->local(), Ecn::congested));
    ASSERT_TRUE(put(*from, "dd", to->local(), Ecn::not_capable));
    ASSERT_TRUE(put(*from, "ee", to->local()));
    EXPECT_EQ(from->flush().packets, 5U);
    const auto arrivals = receive(*to, 5);
    ASSERT_EQ(arrivals.size(), 5U);
    EXPECT_EQ(arrivals[0].ecn, Ecn::capable_0);
    EXPECT_EQ(arrivals[1].ecn, Ecn::congested);
    EXPECT_EQ(arrivals[2].ecn, Ecn::congested);
    EXPECT_EQ(arrivals[3].ecn, Ecn::not_capable);
    EXPECT_EQ(arrivals[4].ecn, Ecn::capable_0);
    EXPECT_EQ(to->counters().congested_packets, 2U);
}

TEST_P(Udp, WithoutEcnNoMarkIsSentOrRead) {
    UdpConfig without = config();
    without.ecn = false;
    const auto silent = open_or_fail(without);
    const auto to = open_or_fail(config());
    ASSERT_TRUE(put(*silent, "aa", to->local(), Ecn::congested));
    silent->flush();
    const auto arrivals = receive(*to, 1);
    ASSERT_EQ(arrivals.size(), 1U);
    EXPECT_EQ(arrivals[0].ecn, Ecn::not_capable);
    ASSERT_TRUE(put(*to, "bb", silent->local(), Ecn::congested));
    to->flush();
    const auto unmarked = receive(*silent, 1);
    ASSERT_EQ(unmarked.size(), 1U);
    EXPECT_EQ(unmarked[0].ecn, Ecn::not_capable);
}

TEST_P(Udp, TooLongDatagramsArriveTruncatedAndMarkedSo) {
    for (const bool gro : {false, true}) {
        UdpConfig narrow = config();
        narrow.max_packet_bytes = 100;
        narrow.gro = gro;
        const auto from = open_or_fail(config());
        const auto to = open_or_fail(narrow);
        for (const std::size_t bytes : {100U, 150U, 150U, 101U, 40U}) {
            ASSERT_TRUE(put(*from, packet(bytes, bytes), to->local()));
        }
        from->flush();
        const auto arrivals = receive(*to, 5);
        ASSERT_EQ(arrivals.size(), 5U);
        const std::vector<std::size_t> sizes{100, 100, 100, 100, 40};
        const std::vector<bool> truncated{false, true, true, true, false};
        for (std::size_t at = 0; at < 5; ++at) {
            EXPECT_EQ(arrivals[at].bytes.size(), sizes[at]) << "gro " << gro << ", datagram " << at;
            EXPECT_EQ(arrivals[at].truncated, truncated[at]) << "gro " << gro << ", datagram " << at;
        }
        EXPECT_EQ(to->counters().truncated_packets, 3U);
    }
}

TEST_P(Udp, FullBufferLeavesPacketsWaitingInOrder) {
    for (const bool gso : {false, true}) {
        UdpConfig sender = config();
        sender.gso = gso;
        const auto from = open_or_fail(sender);
        const auto to = open_or_fail(config());
        std::vector<std::string> packets;
        for (std::size_t at = 0; at < 30; ++at) {
            packets.push_back(packet(at, 100 + at % 3));  // sizes that cannot share one message
            ASSERT_TRUE(put(*from, packets.back(), to->local()));
        }
        system_calls.messages_until_full = 7;
        const Flush first = from->flush();
        EXPECT_GT(first.packets, 0U);
        EXPECT_GT(first.waiting, 0U);
        EXPECT_EQ(first.packets + first.waiting, 30U);
        EXPECT_EQ(first.refused, 0U);
        EXPECT_EQ(from->waiting(), first.waiting);
        EXPECT_EQ(from->flush().packets, 0U) << "still full";
        packets.push_back(packet(30, 99));
        ASSERT_TRUE(put(*from, packets.back(), to->local())) << "room is left for more";
        system_calls.messages_until_full = -1;
        EXPECT_EQ(from->flush().packets, first.waiting + 1);
        EXPECT_EQ(from->waiting(), 0U);
        EXPECT_EQ(bytes_of(receive(*to, 31)), packets);
    }
}

TEST_P(Udp, BorrowedPacketsOutliveAFullBufferAndTheirMemory) {
    UdpConfig small = config();
    small.send_arena_bytes = 8;
    const auto from = open_or_fail(small);
    const auto to = open_or_fail(config());
    std::string first = "12345";
    std::string second = "6789";
    ASSERT_TRUE(from->borrow(std::as_bytes(std::span(first)), to->local()));
    ASSERT_TRUE(from->borrow(std::as_bytes(std::span(second)), to->local()));
    system_calls.messages_until_full = 0;
    const Flush flush = from->flush();
    EXPECT_EQ(flush.waiting, 1U);
    EXPECT_EQ(flush.overrun, 1U);
    EXPECT_EQ(from->counters().overrun_packets, 1U);
    first = "XXXXX";
    system_calls.messages_until_full = -1;
    EXPECT_EQ(from->flush().packets, 1U);
    EXPECT_EQ(bytes_of(receive(*to, 1)), std::vector<std::string>{"12345"});
}

TEST_P(Udp, KernelDropsForAFullBufferAreCounted) {
    UdpConfig tiny = config();
    tiny.receive_buffer_bytes = 4096;
    const auto from = open_or_fail(config());
    const auto to = open_or_fail(tiny);
    put_packets(*from, to->local(), 500, 1000);
    EXPECT_EQ(from->flush().packets, 500U);
    std::array<wire::Datagram, 64> batch;
    std::size_t received = 0;
    while (const std::size_t count = to->receive(batch).value_or(0)) received += count;
    ASSERT_LT(received, 500U);
    // The kernel reports the number of dropped packets with the next packet that it delivers.
    ASSERT_TRUE(put(*from, "x", to->local()));
    from->flush();
    received += receive(*to, 1).size() - 1;
    EXPECT_GT(to->counters().dropped_packets, 0U);
    EXPECT_LE(to->counters().dropped_packets, 500U - received);
}

TEST_P(Udp, FullQueueRefusesPackets) {
    UdpConfig small = config();
    small.send_packets = 2;
    const auto from = open_or_fail(small);
    ASSERT_TRUE(put(*from, "a", from->local()));
    ASSERT_TRUE(put(*from, "b", from->local()));
    EXPECT_TRUE(from->reserve(1).empty());
    EXPECT_FALSE(from->repeat(from->local()));
    EXPECT_EQ(from->flush().packets, 2U);
    EXPECT_EQ(from->reserve(1).size(), 1U);
}

TEST_P(Udp, AddressInUseIsRefusedUnlessThePortIsShared) {
    UdpConfig shared = config();
    shared.reuse_port = true;
    const auto first = open_or_fail(shared);
    UdpConfig taken = config();
    taken.local = first->local();
    const auto refused = UdpSocket::open(taken);
    EXPECT_TRUE(
        fails(refused, {.operation = Operation::bind, .reason = Reason::in_use, .peer = to_string(first->local())}));
    taken.reuse_port = true;
    EXPECT_TRUE(UdpSocket::open(taken));
}

// Several sockets of this host receive the group that they joined, and no other group.
TEST(UdpGroup, DatagramReachesAllMembersOfItsGroup) {
    const Address local = Address::loopback(wire::Family::ipv4, 0);
    UdpConfig member;
    member.local = *Address::parse("239.192.7.8:45792");
    member.member_at = local;
    const auto first = open_or_fail(member);
    const auto second = open_or_fail(member);
    member.local = *Address::parse("239.192.7.9:45792");
    const auto other = open_or_fail(member);
    ASSERT_TRUE(first && second && other);
    const auto from = open_or_fail(on_loopback(wire::Family::ipv4));
    from->reach_group(first->local(), local);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(put(*from, "result", first->local(), wire::Ecn::congested));
    EXPECT_EQ(from->flush().packets, 3U);
    for (net::UdpSocket* const socket : {first.get(), second.get()}) {
        const auto arrivals = receive(*socket, 3);
        ASSERT_EQ(arrivals.size(), 3U);
        for (const Arrival& arrival : arrivals) {
            EXPECT_EQ(arrival.bytes, "result");
            EXPECT_EQ(arrival.from, from->local());
            EXPECT_EQ(arrival.ecn, wire::Ecn::congested);
        }
    }
    std::array<wire::Datagram, 1> datagrams;
    EXPECT_EQ(other->receive(datagrams), 0U);
}

TEST(UdpGroup, MemberThatRejoinsStillReceivesItsGroup) {
    const Address local = Address::loopback(wire::Family::ipv4, 0);
    UdpConfig config;
    config.local = *Address::parse("239.192.7.10:45792");
    config.member_at = local;
    const auto member = open_or_fail(config);
    const auto from = open_or_fail(on_loopback(wire::Family::ipv4));
    ASSERT_TRUE(member && from);
    from->reach_group(member->local(), local);
    ASSERT_TRUE(member->rejoin_group());
    ASSERT_TRUE(put(*from, "result", member->local()));
    EXPECT_EQ(from->flush().packets, 1U);
    EXPECT_EQ(receive(*member, 1).size(), 1U);
    const auto refused = from->rejoin_group();
    EXPECT_TRUE(fails(refused, {.operation = Operation::configure})) << "who is in none";
}

TEST(UdpGroup, Ipv6GroupIsUnsupported) {
    UdpConfig member;
    member.local = *Address::parse("[ff18::7]:45792");
    member.member_at = Address::loopback(wire::Family::ipv6, 0);
    EXPECT_TRUE(fails(UdpSocket::open(member), {.reason = Reason::unsupported}));
}

TEST(UdpOpen, EmptyLocalAddressIsMalformed) { EXPECT_TRUE(fails(UdpSocket::open({}), {.reason = Reason::malformed})); }

TEST(UdpOpen, AddressOfAnotherHostIsUnreachable) {
    UdpConfig config;
    config.local = *wire::Address::parse("192.0.2.1:0");
    EXPECT_TRUE(fails(UdpSocket::open(config), {.reason = Reason::unreachable}));
}

}  // namespace
}  // namespace atp::test
