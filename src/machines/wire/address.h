// SPDX-License-Identifier: Apache-2.0
// A socket address: an IPv4 or IPv6 host and a port, as the kernel wants it.
//
// A value: no ownership, comparable, hashable, safe to copy between threads. An IPv4 host has one spelling here:
// IPv4-mapped IPv6 addresses (::ffff:10.0.0.1) become IPv4 when they are parsed or received, so that one peer is never
// two. IPv6 flow labels take no part in identity; the scope of a link-local address does.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace atp::wire {

enum class Family : std::uint8_t { none, ipv4, ipv6 };

class Address {
  public:
    Address() = default;  // of no family: nobody

    [[nodiscard]] static Address any(Family family, std::uint16_t port);
    [[nodiscard]] static Address loopback(Family family, std::uint16_t port);
    // Nobody where the family is neither IPv4 nor IPv6 or `size` is too short for it.
    [[nodiscard]] static Address from(const sockaddr* bytes, socklen_t size);
    // "10.0.0.1:4791", "[2001:db8::1]:4791", "[fe80::1%eth0]:4791". Numbers alone, so it never waits: names are
    // resolve()'s business.
    [[nodiscard]] static Result<Address> parse(std::string_view text);

    [[nodiscard]] Family family() const;
    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] Address with_port(std::uint16_t port) const;
    [[nodiscard]] bool is_any() const;
    [[nodiscard]] bool is_loopback() const;
    [[nodiscard]] bool is_multicast() const;

    // For system calls; size() is 0 for nobody.
    [[nodiscard]] const sockaddr* data() const { return &storage_.base; }
    [[nodiscard]] socklen_t size() const;

    [[nodiscard]] std::uint64_t hash() const;
    [[nodiscard]] bool operator==(const Address& other) const;
    // An order for maps and tables, of no further meaning: by family, host, port, scope.
    [[nodiscard]] std::strong_ordering operator<=>(const Address& other) const;

  private:
    // The kernel's own structures begin with the family, whichever is stored.
    union Storage {
        sockaddr_in6 v6{};
        sockaddr_in v4;
        sockaddr base;
    };
    Storage storage_{};
};

[[nodiscard]] std::string_view to_string(Family family);
// As parse() reads it; "nobody" for an address of no family.
[[nodiscard]] std::string to_string(const Address& address);

// "host:port" or "[host]:port" in two, neither judged.
struct HostPort {
    std::string_view host;
    std::uint16_t port = 0;
};
[[nodiscard]] Result<HostPort> split_host_port(std::string_view text);

}  // namespace atp::wire

template <>
struct std::hash<atp::wire::Address> {
    std::size_t operator()(const atp::wire::Address& address) const noexcept { return address.hash(); }
};
