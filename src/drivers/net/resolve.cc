// SPDX-License-Identifier: Apache-2.0
#include "net/resolve.h"

#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "net/clock.h"

namespace atp::net {
namespace {

struct FreeAnswers {
    void operator()(addrinfo* answers) const { freeaddrinfo(answers); }
};

int native(wire::Family family) {
    switch (family) {
        case wire::Family::ipv4: return AF_INET;
        case wire::Family::ipv6: return AF_INET6;
        case wire::Family::none: break;
    }
    return AF_UNSPEC;
}

Reason reason_of_resolver(int status) {
    switch (status) {
        case EAI_NONAME:
        case EAI_NODATA:
        case EAI_ADDRFAMILY: return Reason::unknown_name;
        case EAI_AGAIN: return Reason::unreachable;
        case EAI_MEMORY: return Reason::exhausted;
        default: return Reason::failed;
    }
}

Failure failed(std::string_view text, int status, int code, Duration elapsed) {
    // errors.md, forms, unreachable: the name is not in `/etc/hosts`, and this host reaches no name server
    constexpr std::string_view no_server = "no name server answers: give an address, or a name of /etc/hosts";
    return Failure(Error{.operation = Operation::resolve,
                         .reason = reason_of_resolver(status),
                         .code = status == EAI_SYSTEM ? code : 0,
                         .peer = std::string(text),
                         .elapsed = elapsed,
                         .text = std::string(status == EAI_AGAIN ? no_server : gai_strerror(status))});
}

Result<std::vector<wire::Address>> ask_resolver(std::string_view text, const wire::HostPort& requested,
                                                wire::Family family) {
    addrinfo hints{};
    hints.ai_family = native(family);
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* first = nullptr;
    const Time start = now();
    const int status = getaddrinfo(std::string(requested.host).c_str(), nullptr, &hints, &first);
    const int code = errno;
    if (status != 0) return failed(text, status, code, now() - start);
    const std::unique_ptr<addrinfo, FreeAnswers> answers(first);
    std::vector<wire::Address> found;
    for (const addrinfo* answer = first; answer != nullptr; answer = answer->ai_next) {
        const wire::Address address =
            wire::Address::from(answer->ai_addr, answer->ai_addrlen).with_port(requested.port);
        if (address.family() != wire::Family::none && std::ranges::find(found, address) == found.end()) {
            found.push_back(address);
        }
    }
    if (found.empty()) return failed(text, EAI_NODATA, 0, now() - start);
    return found;
}

// A host name consists of letters, digits, '-', '_' and '.'. A last label that begins with a digit is a mistyped
// number, which a resolver would refuse too, but only after a delay.
bool looks_like_a_name(std::string_view host) {
    const auto is_alphabetic = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const std::size_t last_label = host.substr(0, host.size() - 1).rfind('.') + 1;
    return !is_digit(host[last_label]) && std::ranges::all_of(host, [&](char c) {
        return is_alphabetic(c) || is_digit(c) || c == '-' || c == '_' || c == '.';
    });
}

// The name of an interface in "[fe80::1%eth0]:9" becomes its number. Other text stays.
Result<std::string> with_numbered_interface(std::string_view text) {
    std::string numbered(text);
    const std::size_t percent = numbered.find('%');
    const std::size_t closing = numbered.find(']');
    if (percent == std::string::npos || closing == std::string::npos || closing < percent) return numbered;
    const std::string name = numbered.substr(percent + 1, closing - percent - 1);
    if (name.find_first_not_of("0123456789") == std::string::npos) return numbered;
    const unsigned number = if_nametoindex(name.c_str());
    if (number == 0) {
        return fail(Operation::resolve, Reason::malformed, std::string(text),
                    fmt::format("this host has no interface '{}'", name));
    }
    return numbered.replace(percent + 1, name.size(), std::to_string(number));
}

}  // namespace

Result<std::vector<wire::Address>> resolve(std::string_view text, wire::Family family) {
    const auto requested = wire::split_host_port(text);
    if (!requested) return Failure(requested.error());
    const auto numbered = with_numbered_interface(text);
    if (!numbered) return tl::unexpected(numbered.error());
    const auto numeric = wire::Address::parse(*numbered);
    if (numeric && (family == wire::Family::none || family == numeric->family())) return std::vector{*numeric};
    if (numeric) {
        return fail(
            Operation::resolve, Reason::malformed, std::string(text),
            fmt::format("this is an {} address, but {} is required", to_string(numeric->family()), to_string(family)));
    }
    if (!looks_like_a_name(requested->host)) return Failure(numeric.error());
    return ask_resolver(text, *requested, family);
}

}  // namespace atp::net
