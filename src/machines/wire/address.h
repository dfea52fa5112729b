// SPDX-License-Identifier: Apache-2.0
// A socket address: an IPv4 or IPv6 host and a port, in the kernel's format.
//
// An Address is a value: it owns nothing and can be compared, hashed and copied between threads. Every IPv4 host has
// one form: parse() and from() convert IPv4-mapped IPv6 addresses (::ffff:10.0.0.1) to IPv4, so one peer is never two
// addresses. Comparisons ignore IPv6 flow labels and include the scope of a link-local address.
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
    Address() = default;  // family none: no address

    [[nodiscard]] static Address any(Family family, std::uint16_t port);
    [[nodiscard]] static Address loopback(Family family, std::uint16_t port);
    // Returns family none if the family is neither IPv4 nor IPv6, or if `size` is too short for it.
    [[nodiscard]] static Address from(const sockaddr* bytes, socklen_t size);
    // Examples: "10.0.0.1:4791", "[2001:db8::1]:4791", "[fe80::1%eth0]:4791". It accepts numeric hosts only, so it
    // never waits. resolve() accepts names.
    [[nodiscard]] static Result<Address> parse(std::string_view text);

    [[nodiscard]] Family family() const;
    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] Address with_port(std::uint16_t port) const;
    [[nodiscard]] bool is_any() const;
    [[nodiscard]] bool is_loopback() const;
    [[nodiscard]] bool is_multicast() const;

    // For system calls; size() is 0 for family none.
    [[nodiscard]] const sockaddr* data() const { return &storage_.base; }
    [[nodiscard]] socklen_t size() const;

    [[nodiscard]] std::uint64_t hash() const;
    [[nodiscard]] bool operator==(const Address& other) const;
    // An order for maps and tables: by family, host, port, scope.
    [[nodiscard]] std::strong_ordering operator<=>(const Address& other) const;

  private:
    // Each of the kernel's structures begins with the family, so `base` can always be read.
    union Storage {
        sockaddr_in6 v6{};
        sockaddr_in v4;
        sockaddr base;
    };
    Storage storage_{};
};

[[nodiscard]] std::string_view to_string(Family family);
// Text that parse() accepts; "none" for family none.
[[nodiscard]] std::string to_string(const Address& address);

// "host:port" or "[host]:port", split. The port is checked; the host is not empty and otherwise unchecked.
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
