// SPDX-License-Identifier: Apache-2.0
// Shared by tests of real sockets: sockets on loopback of either family, and a receiver that waits up to 5 s.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/udp_socket.h"

namespace atp::net {

// GoogleTest finds this function by its name and prints parameters with it.
inline void PrintTo(wire::Family family, std::ostream* out) { *out << to_string(family); }

}  // namespace atp::net

namespace atp::test {

struct Arrival {
    std::string bytes;
    wire::Address from;
    wire::Ecn ecn = wire::Ecn::not_capable;
    bool truncated = false;
};

inline net::UdpConfig on_loopback(wire::Family family) {
    net::UdpConfig config;
    config.local = wire::Address::loopback(family, 0);
    return config;
}

inline std::unique_ptr<net::UdpSocket> open_or_fail(const net::UdpConfig& config) {
    auto socket = net::UdpSocket::open(config);
    if (!socket) {
        ADD_FAILURE() << to_string(socket.error());
        return nullptr;
    }
    return std::move(*socket);
}

inline bool put(net::UdpSocket& socket, std::string_view bytes, const wire::Address& to,
                wire::Ecn ecn = wire::Ecn::capable_0) {
    const auto room = socket.reserve(bytes.size());
    if (room.size() != bytes.size()) return false;
    std::memcpy(room.data(), bytes.data(), bytes.size());
    socket.commit(bytes.size(), to, ecn);
    return true;
}

// Text of `bytes` bytes that begins with its number.
inline std::string packet(std::size_t number, std::size_t bytes) {
    std::string text = std::to_string(number) + ":";
    text.resize(bytes, static_cast<char>('a' + number % 26));
    return text;
}

// False if nothing arrives within 5 s.
inline bool wait_readable(int descriptor) {
    pollfd waited{descriptor, POLLIN, 0};
    return ::poll(&waited, 1, 5000) == 1;
}

// Waits for `count` datagrams, and takes those that arrive with them.
inline std::vector<Arrival> receive(net::UdpSocket& socket, std::size_t count) {
    std::vector<Arrival> arrivals;
    std::array<wire::Datagram, 16> batch;
    while (arrivals.size() < count) {
        const auto received = socket.receive(batch);
        if (!received) {
            ADD_FAILURE() << to_string(received.error());
            break;
        }
        for (std::size_t at = 0; at < *received; ++at) {
            const wire::Datagram& datagram = batch[at];
            arrivals.push_back(
                {std::string(datagram.bytes.size(), '\0'), *datagram.from, datagram.ecn, datagram.truncated});
            std::memcpy(arrivals.back().bytes.data(), datagram.bytes.data(), datagram.bytes.size());
        }
        if (*received == 0 && !wait_readable(socket.descriptor())) break;
    }
    return arrivals;
}

inline std::vector<std::string> bytes_of(const std::vector<Arrival>& arrivals) {
    std::vector<std::string> bytes;
    bytes.reserve(arrivals.size());
    for (const Arrival& arrival : arrivals) bytes.push_back(arrival.bytes);
    return bytes;
}

// Each test runs over IPv4 and IPv6.
class OnLoopback : public ::testing::TestWithParam<wire::Family> {
  protected:
    void SetUp() override {
        if (!net::UdpSocket::open(on_loopback(GetParam()))) {
            GTEST_SKIP() << "no " << to_string(GetParam()) << " loopback on this machine";
        }
    }
    [[nodiscard]] static net::UdpConfig config() { return on_loopback(GetParam()); }
};

inline const auto both_families = ::testing::Values(wire::Family::ipv4, wire::Family::ipv6);
inline std::string family_name(const ::testing::TestParamInfo<wire::Family>& info) {
    return std::string(to_string(info.param));
}

}  // namespace atp::test
