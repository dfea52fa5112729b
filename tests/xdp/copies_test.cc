// SPDX-License-Identifier: Apache-2.0
// What the program at tc ingress does with packets and messages for all members of a channel.
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "control/branch.h"
#include "job_in_the_kernel.h"
#include "net/descriptor.h"
#include "support/control_messages.h"
#include "wire/control.h"

namespace atp::test {
namespace {

constexpr std::uint64_t group_number = 0x60'0D;
constexpr std::uint16_t port_of_server = 4790;
constexpr control::JobKey of_job{job, token};

// Frames that leave the loopback interface, which is where the members of these tests are.
class Loopback {
  public:
    Loopback() : socket_(::socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))) {
        sockaddr_ll address{};
        address.sll_family = AF_PACKET;
        address.sll_protocol = htons(ETH_P_ALL);
        address.sll_ifindex = static_cast<int>(if_nametoindex("lo"));
        EXPECT_EQ(bind(socket_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    // Those that are addressed to a port of the members.
    std::vector<Unwrapped> sent() const {
        std::vector<Unwrapped> frames;
        pollfd ready{.fd = socket_.number(), .events = POLLIN, .revents = 0};
        while (poll(&ready, 1, 50) > 0) {
            Bytes frame(2048);
            sockaddr_ll from{};
            socklen_t size = sizeof from;
            const ssize_t got =
                recvfrom(socket_.number(), frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
            if (got < 0) break;
            frame.resize(static_cast<std::size_t>(got));
            if (from.sll_pkttype != PACKET_OUTGOING || frame.size() < 60 || frame[0] != std::byte{2}) continue;
            frames.push_back(unwrap(frame));
        }
        return frames;
    }

  private:
    net::Descriptor socket_;
};

// In a network of its own, because all copies leave one interface.
class Copies : public SwitchInTheKernel {
  protected:
    void SetUp() override {
        SwitchInTheKernel::SetUp();
        if (machine == nullptr) return;
        ASSERT_EQ(unshare(CLONE_NEWNET), 0);
        const net::Descriptor socket(::socket(AF_INET, SOCK_DGRAM, 0));
        ifreq request{};
        std::strcpy(request.ifr_name, "lo");
        request.ifr_flags = IFF_UP;
        ASSERT_EQ(ioctl(socket.number(), SIOCSIFFLAGS, &request), 0);
    }
    static Bytes result(std::uint64_t token_in_packet = group_number, std::uint16_t worker = ATP_WORKER_ALL) {
        atp_header header = gradient(0);
        header.type = ATP_TYPE_ACK;
        header.token = token_in_packet;
        header.worker = worker;
        return conformance::bytes_of(header, {1, 2, 3});
    }
    Bytes to_first(const Bytes& payload, int ip) const {
        return wrap(payload, {.ip = ip, .source = port_of_server, .destination = 50'000});
    }
    // Members 0, 1 and 2 at ports 50,000 to 50,002. The first is the receiver of to_first().
    void learn_members(int ip) {
        ASSERT_TRUE(machine->learn_group(of_job, group_number));
        const Unwrapped first = unwrap(to_first(result(), ip));
        std::vector<control::PassedMember> members;
        for (std::uint16_t number = 0; number < 3; ++number) {
            wire::Endpoint endpoint{.family = static_cast<std::uint8_t>(ip), .port = 0, .host = {}};
            endpoint.port = static_cast<std::uint16_t>(50'000 + number);
            std::memcpy(endpoint.host.data(), first.destination.data(), first.destination.size());
            endpoint.host[3] ^= static_cast<std::byte>(number);
            control::PassedMember member{
                .number = number, .address = control::address_of(endpoint), .entrance = if_nametoindex("lo")};
            member.ethernet.fill(std::byte{0x10});  // of the receiver of its JOIN, then its own
            std::fill(member.ethernet.begin() + 6, member.ethernet.end(), static_cast<std::byte>(2 + 2 * number));
            member.ethernet[6] = std::byte{2};
            members.push_back(member);
        }
        machine->set_members(of_job, group_number, members);
    }
    void copy(const Bytes& frame) {
        const auto outcome = machine->run_copy(frame);
        ASSERT_TRUE(outcome) << to_string(outcome.error());
        EXPECT_EQ(outcome->disposition, xdp::Disposition::passed);
        EXPECT_EQ(outcome->frame, frame) << "the frame itself goes on as it came";
    }
    void pay(int frames, int ip) {
        for (int i = 0; i < frames; ++i) send(gradient(0), {1, 2, 3}, {.ip = ip});
    }
    xdp::KernelCounters counted() const { return machine->job_counters(of_job).value_or(xdp::KernelCounters{}); }
};

TEST_F(Copies, H108_DifferInTheirReceiverOnly) {
    if (machine == nullptr) return;
    for (const int ip : {4, 6}) {
        machine->forget_group(of_job, group_number);
        learn_members(ip);
        pay(3, ip);
        const Loopback loopback;
        const Unwrapped original = unwrap(to_first(result(), ip));
        copy(to_first(result(), ip));
        const std::vector<Unwrapped> copies = loopback.sent();
        ASSERT_EQ(copies.size(), 2U) << ip;
        for (unsigned i = 0; i < copies.size(); ++i) {
            EXPECT_EQ(copies[i].payload, original.payload);
            EXPECT_EQ(copies[i].source, original.source);
            EXPECT_EQ(copies[i].source_port, port_of_server);
            Bytes member = original.destination;
            member[3] ^= static_cast<std::byte>(i + 1);
            EXPECT_EQ(copies[i].destination, member);
            EXPECT_EQ(copies[i].hop_limit, original.hop_limit);
            EXPECT_EQ(copies[i].ecn, original.ecn);
            EXPECT_EQ(copies[i].destination_port, 50'001U + i);
            EXPECT_EQ(copies[i].checksum, Checksum::full);
            EXPECT_TRUE(copies[i].network_checksum_holds);
            EXPECT_EQ(copies[i].ethernet[1], static_cast<std::byte>(4 + 2 * i)) << "to where its JOIN came from";
            EXPECT_EQ(copies[i].ethernet[6], std::byte{0x10});
        }
    }
}

TEST_F(Copies, H108_HaveNoMoreBytesThanArrived) {
    if (machine == nullptr) return;
    learn_members(4);
    const Bytes frame = to_first(result(), 4);
    copy(frame);
    EXPECT_EQ(counted().uncopied, 1U) << "members that sent nothing may be made up";
    EXPECT_EQ(counted().copied_bytes, 0U);
    pay(3, 4);
    copy(frame);
    EXPECT_EQ(counted().copied_bytes, 0U) << "its members are to learn that the server sends to each";
}

TEST_F(Copies, H108_AreAsManyAsAJobHasPaidFor) {
    if (machine == nullptr) return;
    learn_members(4);
    const Bytes frame = to_first(result(), 4);
    pay(3, 4);
    copy(frame);
    EXPECT_EQ(counted().copied_bytes, 2 * frame.size());
    copy(frame);
    EXPECT_EQ(counted().uncopied, 1U);
    EXPECT_EQ(counted().copied_bytes, 2 * frame.size());
}

TEST_F(Copies, H108_AreNoneOfAJobThatIsForwardedUnaggregated) {
    if (machine == nullptr) return;
    learn_members(4);
    pay(20, 4);
    machine->set_level(of_job, ATP_LEVELS);
    copy(to_first(result(), 4));
    EXPECT_EQ(counted().copied_bytes, 0U);
    EXPECT_EQ(counted().uncopied, 0U);
}

TEST_F(Copies, H108_AreOnlyOfWhatIsForAllMembers) {
    if (machine == nullptr) return;
    learn_members(4);
    pay(20, 4);
    copy(to_first(result(token), 4));             // for this member, and the switch sends another one to each
    copy(to_first(result(group_number, 0), 4));   // asked for by worker 0
    copy(to_first(result(group_number + 1), 4));  // of another channel
    copy(wrap(result(), {.source = port_of_server, .destination = 49'999}));  // to a stranger
    copy(wrap(result(), {.vlan_tags = 1, .source = port_of_server, .destination = 50'000}));
    copy(wrap(conformance::bytes_of(gradient(1), {1, 2, 3}), {.source = port_of_server, .destination = 50'000}));
    EXPECT_EQ(counted().copied_bytes, 0U);
    EXPECT_EQ(counted().uncopied, 0U);
    wire::Joined joined{.job = job, .token = group_number, .channel = 0};
    joined.group_number = group_number;
    copy(to_first(testing::encoded(joined), 4));
    EXPECT_GT(counted().copied_bytes, 0U);
}

}  // namespace
}  // namespace atp::test
