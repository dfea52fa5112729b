// SPDX-License-Identifier: Apache-2.0
#include "doctor/tcp_probe.h"

#include <gtest/gtest.h>

#include "net/clock.h"
#include "net/descriptor.h"
#include "support/fails.h"

namespace atp::doctor {
namespace {

// Binds a TCP socket and returns its address.
wire::Address bind_tcp(const net::Descriptor& socket) {
    const wire::Address any = wire::Address::loopback(wire::Family::ipv4, 0);
    sockaddr_in name{};
    socklen_t size = sizeof name;
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    EXPECT_EQ(bind(socket.number(), any.data(), any.size()), 0);
    EXPECT_EQ(getsockname(socket.number(), generic, &size), 0);
    return wire::Address::from(generic, size);
}

TEST(TcpProbe, OpenPortConnects) {
    const net::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const wire::Address address = bind_tcp(socket);
    ASSERT_EQ(listen(socket.number(), 1), 0);
    const auto connected = time_to_connect(address, net::now() + std::chrono::seconds(10));
    ASSERT_TRUE(connected) << to_string(connected.error());
    EXPECT_GT(connected->count(), 0);
}

TEST(TcpProbe, ClosedPortIsRefused) {
    const net::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto connected = time_to_connect(bind_tcp(socket), net::now() + std::chrono::seconds(10));
    EXPECT_TRUE(fails(connected, {.reason = Reason::refused}));
}

TEST(TcpProbe, FullBacklogTimesOut) {
    // The queue has one position, which is taken: the kernel then ignores further connections.
    const net::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const wire::Address address = bind_tcp(socket);
    ASSERT_EQ(listen(socket.number(), 0), 0);
    std::vector<net::Descriptor> waiting;
    for (int i = 0; i < 4; ++i) {
        waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        static_cast<void>(connect(waiting.back().number(), address.data(), address.size()));
    }
    const auto connected = time_to_connect(address, net::now() + std::chrono::milliseconds(200));
    EXPECT_TRUE(fails(connected, {.reason = Reason::timed_out}));
}

}  // namespace
}  // namespace atp::doctor
