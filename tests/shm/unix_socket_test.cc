// SPDX-License-Identifier: Apache-2.0
#include "shm/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "net/clock.h"
#include "support/fails.h"

namespace atp::shm {
namespace {

Time later() { return net::now() + std::chrono::seconds(20); }

// Both ends of one connection.
struct Connection {
    Connection() {
        auto listener = listen_at(name);
        auto connected = connect_to(name);
        auto taken = accept_from(*listener, later());
        here = *std::move(connected);
        there = *std::move(taken);
    }
    std::string name = "atp-test-" + std::to_string(getpid());
    net::Descriptor here, there;
};

TEST(UnixSocket, NameIsTakenOnceAndNobodyAnswersAtAnother) {
    const std::string name = "atp-taken-" + std::to_string(getpid());
    const auto first = listen_at(name);
    ASSERT_TRUE(first);
    EXPECT_TRUE(fails(listen_at(name), {.reason = Reason::in_use}));
    EXPECT_FALSE(connect_to(name + "-else"));
    EXPECT_TRUE(fails(accept_from(*first, net::now()), {.reason = Reason::timed_out}));
}

TEST(UnixSocket, EndsKnowTheProcessOfEachOther) {
    const Connection both;
    const auto process = peer_of(both.here);
    ASSERT_TRUE(process);
    EXPECT_EQ(process->pid, getpid());
    EXPECT_EQ(process->user, geteuid());
    EXPECT_FALSE(peer_of(net::Descriptor(open("/dev/null", O_RDONLY)))) << "no socket";
}

TEST(UnixSocket, DescriptorPassesAndStaysOpen) {
    const Connection both;
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const net::Descriptor reads(ends[0]);
    net::Descriptor writes(ends[1]);
    ASSERT_TRUE(send_descriptor(both.here, writes.number()));
    writes = {};
    const auto passed = receive_descriptor(both.there, later());
    ASSERT_TRUE(passed) << to_string(passed.error());
    EXPECT_EQ(write(passed->number(), "x", 1), 1);
    char read_back = 0;
    EXPECT_EQ(read(reads.number(), &read_back, 1), 1);
    EXPECT_EQ(read_back, 'x');
}

TEST(UnixSocket, MessageWithoutADescriptorIsMalformed) {
    const Connection both;
    const std::array<std::byte, 1> plain{};
    ASSERT_TRUE(send_all(both.here, plain));
    EXPECT_TRUE(fails(receive_descriptor(both.there, later()), {.reason = Reason::malformed}));
}

int open_descriptors() {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST(UnixSocket, FurtherDescriptorsOfAMessageStayClosed) {
    const Connection both;
    const int before = open_descriptors();
    for (const std::size_t count : {2U, 3U}) {
        const std::vector<int> numbers(count, both.here.number());
        std::byte payload{1};
        iovec part{.iov_base = &payload, .iov_len = 1};
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(3 * sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &part, message.msg_iovlen = 1;
        message.msg_control = control.data(), message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        std::memcpy(CMSG_DATA(header), numbers.data(), count * sizeof(int));
        ASSERT_EQ(sendmsg(both.here.number(), &message, 0), 1);
        EXPECT_TRUE(fails(receive_descriptor(both.there, later()), {.reason = Reason::malformed}));
        EXPECT_EQ(open_descriptors(), before);
    }
}

TEST(UnixSocket, EndOfTheOtherProcessIsAnError) {
    Connection both;
    std::array<std::byte, 2> bytes{};
    ASSERT_TRUE(send_all(both.here, std::span(bytes).first(1)));
    EXPECT_EQ(receive_all(both.there, bytes, net::now()).error().reason, Reason::timed_out) << "one byte is missing";
    both.here = {};
    EXPECT_EQ(receive_all(both.there, bytes, later()).error().reason, Reason::closed);
    EXPECT_FALSE(send_all(both.there, bytes));
    EXPECT_FALSE(send_descriptor(both.there, both.there.number()));
}

}  // namespace
}  // namespace atp::shm
