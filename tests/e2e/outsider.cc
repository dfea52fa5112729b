// SPDX-License-Identifier: Apache-2.0
#include "outsider.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace atp::test {

sockaddr_in ipv4(const char* host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    inet_pton(AF_INET, host, &address.sin_addr);
    return address;
}

Outsider::Outsider() : socket_(bound(ipv4("127.0.0.2", 0))) {
    const in_addr loopback{htonl(INADDR_LOOPBACK)};
    EXPECT_EQ(setsockopt(socket_.number(), IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback), 0);
}

void Outsider::send(std::span<const std::byte> bytes, const wire::Address& to) {
    sent_bytes += bytes.size();
    EXPECT_GE(sendto(socket_.number(), bytes.data(), bytes.size(), 0, to.data(), to.size()), 0) << std::strerror(errno);
}

net::Descriptor Outsider::listener(const wire::Address& group) {
    sockaddr_in at{};
    std::memcpy(&at, group.data(), sizeof at);
    net::Descriptor socket = bound(at);
    const ip_mreq request{.imr_multiaddr = at.sin_addr, .imr_interface = {htonl(INADDR_LOOPBACK)}};
    EXPECT_EQ(setsockopt(socket.number(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request), 0);
    return socket;
}

Bytes Outsider::receive(const net::Descriptor& from, int at_most_ms) {
    pollfd waiting{.fd = from.number(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, at_most_ms) <= 0) return {};
    Bytes bytes(65'535);
    const ssize_t size = recv(from.number(), bytes.data(), bytes.size(), 0);
    bytes.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return bytes;
}

Bytes Outsider::join(wire::Join join, const wire::Address& to) {
    join.cookie = cookie_;
    join.epoch = ++epoch_;
    say(wire::JoiningMessage(join), to);
    for (Bytes answer = receive(2000); !answer.empty(); answer = receive(2000)) {
        const auto joined = wire::decode<wire::Joined>(answer);
        if (joined && joined->token != join.terms.token) continue;  // the switch asks an earlier, silent member
        const auto retry = wire::decode<wire::Retry>(answer);
        if (!retry) return answer;
        join.cookie = cookie_ = retry->cookie;
        say(wire::JoiningMessage(join), to);
    }
    return {};
}

net::Descriptor Outsider::bound(const sockaddr_in& at) {
    net::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    EXPECT_EQ(setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    EXPECT_EQ(bind(socket.number(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0) << std::strerror(errno);
    return socket;
}

}  // namespace atp::test
