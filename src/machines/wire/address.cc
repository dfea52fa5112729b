// SPDX-License-Identifier: Apache-2.0
#include "wire/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

namespace atp::wire {
namespace {

constexpr const char* accepted_form = "use host:port or [IPv6]:port, with a port from 0 to 65535";

Failure malformed(std::string_view text, std::string why) {
    return fail(Operation::parse, Reason::malformed, std::string(text), std::move(why) + "; " + accepted_form);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, port);
    if (error != std::errc{} || at != end) return std::nullopt;
    return port;
}

std::optional<in_addr> parse_v4(const std::string& host) {
    in_addr parsed{};
    if (inet_pton(AF_INET, host.c_str(), &parsed) != 1) return std::nullopt;
    return parsed;
}

// Number of a local interface. net::resolve() accepts names too.
std::optional<std::uint32_t> parse_scope(std::string_view scope) {
    std::uint32_t index = 0;
    const char* const end = scope.data() + scope.size();
    const auto [at, error] = std::from_chars(scope.data(), end, index);
    if (error != std::errc{} || at != end || index == 0) return std::nullopt;
    return index;
}

Result<sockaddr_in6> parse_v6(std::string_view host, std::string_view text) {
    sockaddr_in6 parsed{};
    parsed.sin6_family = AF_INET6;
    const std::size_t percent = host.find('%');
    if (inet_pton(AF_INET6, std::string(host.substr(0, percent)).c_str(), &parsed.sin6_addr) != 1) {
        return malformed(text, fmt::format("'{}' is not a numeric address", host));
    }
    if (percent == std::string_view::npos) return parsed;
    const std::string_view scope = host.substr(percent + 1);
    const auto index = parse_scope(scope);
    if (!index) return malformed(text, fmt::format("'{}' is no number of an interface", scope));
    parsed.sin6_scope_id = *index;
    return parsed;
}

// splitmix64's finaliser: addresses differ in few bits, and hash tables use few bits.
std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
    return value ^ (value >> 31);
}

std::array<std::uint64_t, 2> words_of(const in6_addr& host) {
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), &host, sizeof host);
    return words;
}

}  // namespace

Address Address::any(Family family, std::uint16_t port) {
    Address address;
    if (family == Family::ipv4) {
        address.storage_.v4 = {};
        address.storage_.v4.sin_family = AF_INET;
        address.storage_.v4.sin_addr.s_addr = htonl(INADDR_ANY);
    } else if (family == Family::ipv6) {
        address.storage_.v6.sin6_family = AF_INET6;
        address.storage_.v6.sin6_addr = in6addr_any;
    }
    return address.with_port(port);
}

Address Address::loopback(Family family, std::uint16_t port) {
    Address address = any(family, port);
    if (family == Family::ipv4) {
        address.storage_.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else if (family == Family::ipv6) {
        address.storage_.v6.sin6_addr = in6addr_loopback;
    }
    return address;
}

Address Address::from(const sockaddr* bytes, socklen_t size) {
    Address address;
    if (bytes == nullptr || size < sizeof(sa_family_t)) return address;
    sa_family_t family = AF_UNSPEC;
    std::memcpy(&family, bytes, sizeof family);
    if (family == AF_INET && size >= sizeof(sockaddr_in)) {
        std::memcpy(&address.storage_.v4, bytes, sizeof(sockaddr_in));
    } else if (family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
        sockaddr_in6 v6{};
        std::memcpy(&v6, bytes, sizeof v6);
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
            Address v4 = any(Family::ipv4, ntohs(v6.sin6_port));
            std::memcpy(&v4.storage_.v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof(in_addr));
            return v4;
        }
        address.storage_.v6 = v6;
    }
    return address;
}

Result<Address> Address::parse(std::string_view text) {
    const auto split = split_host_port(text);
    if (!split) return Failure(split.error());
    if (split->host.find(':') == std::string_view::npos) {
        const auto host = parse_v4(std::string(split->host));
        if (!host) return malformed(text, fmt::format("'{}' is not a numeric address", split->host));
        Address address = any(Family::ipv4, split->port);
        address.storage_.v4.sin_addr = *host;
        return address;
    }
    const auto v6 = parse_v6(split->host, text);
    if (!v6) return Failure(v6.error());
    Address address;
    address.storage_.v6 = *v6;
    return from(address.data(), sizeof(sockaddr_in6)).with_port(split->port);
}

Family Address::family() const {
    if (storage_.base.sa_family == AF_INET) return Family::ipv4;
    return storage_.base.sa_family == AF_INET6 ? Family::ipv6 : Family::none;
}

std::uint16_t Address::port() const {
    if (family() == Family::ipv4) return ntohs(storage_.v4.sin_port);
    return family() == Family::ipv6 ? ntohs(storage_.v6.sin6_port) : std::uint16_t{0};
}

Address Address::with_port(std::uint16_t port) const {
    Address address = *this;
    if (family() == Family::ipv4) {
        address.storage_.v4.sin_port = htons(port);
    } else if (family() == Family::ipv6) {
        address.storage_.v6.sin6_port = htons(port);
    }
    return address;
}

bool Address::is_any() const {
    if (family() == Family::ipv4) return storage_.v4.sin_addr.s_addr == htonl(INADDR_ANY);
    return family() == Family::ipv6 && IN6_IS_ADDR_UNSPECIFIED(&storage_.v6.sin6_addr);
}

bool Address::is_loopback() const {
    if (family() == Family::ipv4) return (ntohl(storage_.v4.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
    return family() == Family::ipv6 && IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr);
}

bool Address::is_multicast() const {
    if (family() == Family::ipv4) return IN_MULTICAST(ntohl(storage_.v4.sin_addr.s_addr));
    return family() == Family::ipv6 && IN6_IS_ADDR_MULTICAST(&storage_.v6.sin6_addr);
}

socklen_t Address::size() const {
    if (family() == Family::ipv4) return sizeof(sockaddr_in);
    return family() == Family::ipv6 ? sizeof(sockaddr_in6) : 0;
}

std::uint64_t Address::hash() const {
    if (family() == Family::ipv4) {
        return mix(std::uint64_t{storage_.v4.sin_addr.s_addr} << 16 | storage_.v4.sin_port);
    }
    if (family() == Family::none) return 0;
    const auto words = words_of(storage_.v6.sin6_addr);
    const std::uint64_t rest = std::uint64_t{storage_.v6.sin6_scope_id} << 16 | storage_.v6.sin6_port;
    return mix(words[0] ^ mix(words[1] ^ mix(rest + 1)));
}

bool Address::operator==(const Address& other) const {
    if (storage_.base.sa_family != other.storage_.base.sa_family) return false;
    if (family() == Family::ipv4) {
        return storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr &&
               storage_.v4.sin_port == other.storage_.v4.sin_port;
    }
    return words_of(storage_.v6.sin6_addr) == words_of(other.storage_.v6.sin6_addr) &&
           storage_.v6.sin6_port == other.storage_.v6.sin6_port &&
           storage_.v6.sin6_scope_id == other.storage_.v6.sin6_scope_id;
}

std::strong_ordering Address::operator<=>(const Address& other) const {
    if (const auto order = family() <=> other.family(); std::is_neq(order)) return order;
    if (family() == Family::ipv4) {
        const auto host = ntohl(storage_.v4.sin_addr.s_addr) <=> ntohl(other.storage_.v4.sin_addr.s_addr);
        return std::is_neq(host) ? host : port() <=> other.port();
    }
    const int host = std::memcmp(&storage_.v6.sin6_addr, &other.storage_.v6.sin6_addr, sizeof(in6_addr));
    if (host != 0) return host < 0 ? std::strong_ordering::less : std::strong_ordering::greater;
    if (const auto order = port() <=> other.port(); std::is_neq(order)) return order;
    return storage_.v6.sin6_scope_id <=> other.storage_.v6.sin6_scope_id;
}

std::string_view to_string(Family family) {
    switch (family) {
        case Family::none: return "none";
        case Family::ipv4: return "IPv4";
        case Family::ipv6: return "IPv6";
    }
    return "unknown";
}

std::string to_string(const Address& address) {
    if (address.family() == Family::none) return "none";
    std::array<char, INET6_ADDRSTRLEN> host{};
    if (address.family() == Family::ipv4) {
        sockaddr_in v4{};
        std::memcpy(&v4, address.data(), sizeof v4);
        inet_ntop(AF_INET, &v4.sin_addr, host.data(), host.size());
        return fmt::format("{}:{}", host.data(), address.port());
    }
    sockaddr_in6 v6{};
    std::memcpy(&v6, address.data(), sizeof v6);
    inet_ntop(AF_INET6, &v6.sin6_addr, host.data(), host.size());
    if (v6.sin6_scope_id == 0) return fmt::format("[{}]:{}", host.data(), address.port());
    return fmt::format("[{}%{}]:{}", host.data(), v6.sin6_scope_id, address.port());
}

Result<HostPort> split_host_port(std::string_view text) {
    const bool bracketed = text.starts_with('[');
    const std::size_t closing = bracketed ? text.find(']') : std::string_view::npos;
    if (bracketed && closing == std::string_view::npos) return malformed(text, "the ']' is missing");
    const std::size_t colon = bracketed ? closing + 1 : text.rfind(':');
    if (colon >= text.size() || text[colon] != ':') return malformed(text, "the port is missing");
    const std::string_view host = bracketed ? text.substr(1, closing - 1) : text.substr(0, colon);
    if (host.empty()) return malformed(text, "the host is missing");
    if (!bracketed && host.find(':') != std::string_view::npos) {
        return malformed(text, "an IPv6 address needs brackets");
    }
    const auto port = parse_port(text.substr(colon + 1));
    if (!port) {
        // errors.md, calls, malformed
        return malformed(text, fmt::format("'{}' is not a port; use a number from 0 to 65535", text.substr(colon + 1)));
    }
    return HostPort{host, *port};
}

}  // namespace atp::wire
