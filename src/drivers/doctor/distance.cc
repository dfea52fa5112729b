// SPDX-License-Identifier: Apache-2.0
#include "doctor/distance.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "net/clock.h"
#include "net/descriptor.h"
#include "net/random.h"
#include "wire/control.h"

namespace atp::doctor {
namespace {

constexpr int attempts = 3;
constexpr std::array<int, 3> usual_ttls{64, 128, 255};

// The TTL of the next datagram; nullopt: none is waiting, or it is no WELCOME with this nonce.
std::optional<int> take_ttl(int descriptor, std::uint64_t nonce) {
    std::array<std::byte, 2048> bytes{};
    alignas(cmsghdr) std::array<std::byte, 128> ancillary{};
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.data();
    message.msg_controllen = ancillary.size();
    const ssize_t size = ::recvmsg(descriptor, &message, MSG_DONTWAIT);
    if (size < 0 || wire::nonce_of(std::span(bytes).first(static_cast<std::size_t>(size))) != nonce)
        return std::nullopt;
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
        const bool is_ttl = (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_TTL) ||
                            (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_HOPLIMIT);
        if (!is_ttl) continue;
        int ttl = 0;
        std::memcpy(&ttl, CMSG_DATA(each), sizeof ttl);
        return ttl;
    }
    return std::nullopt;
}

}  // namespace

std::optional<unsigned> count_routers(const wire::Address& peer, Duration longest_wait) {
    const bool v6 = peer.family() == wire::Family::ipv6;
    const net::Descriptor socket(::socket(peer.data()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (!socket.valid() || ::connect(socket.number(), peer.data(), peer.size()) != 0 ||
        ::setsockopt(socket.number(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVHOPLIMIT : IP_RECVTTL, &on,
                     sizeof on) != 0) {
        return std::nullopt;
    }
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const wire::Hello hello{.nonce = net::random_bits()};
        std::array<std::byte, wire::least_question_bytes> bytes{};
        const std::size_t size = wire::encode(hello, bytes, bytes.size());
        if (::send(socket.number(), bytes.data(), size, 0) < 0) return std::nullopt;
        const Time end = net::now() + longest_wait;
        for (Time at = net::now(); at < end; at = net::now()) {
            pollfd waiting{.fd = socket.number(), .events = POLLIN, .revents = 0};
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - at).count();
            if (::poll(&waiting, 1, static_cast<int>(left)) <= 0) break;
            const auto ttl = take_ttl(socket.number(), hello.nonce);
            if (!ttl) continue;
            const auto first = std::ranges::lower_bound(usual_ttls, *ttl);
            if (first == usual_ttls.end()) return std::nullopt;
            return static_cast<unsigned>(*first - *ttl);
        }
    }
    return std::nullopt;
}

}  // namespace atp::doctor
