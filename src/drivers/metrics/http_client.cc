// SPDX-License-Identifier: Apache-2.0
#include "metrics/http_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "net/clock.h"
#include "net/descriptor.h"
#include "net/resolve.h"

namespace atp::metrics {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 24U;

// Lets the next calls of the kind of `option` (SO_RCVTIMEO or SO_SNDTIMEO) wait until `end`, a millisecond at least.
void wait_until(Time end, int option, const net::Descriptor& socket) {
    constexpr std::int64_t in_a_second = 1'000'000;
    const std::int64_t left =
        std::max<std::int64_t>(1'000, std::chrono::ceil<std::chrono::microseconds>(end - net::now()).count());
    const timeval longest{.tv_sec = left / in_a_second, .tv_usec = left % in_a_second};
    setsockopt(socket.number(), SOL_SOCKET, option, &longest, sizeof longest);
}

Result<net::Descriptor> connected(const std::string& target, Time end) {
    sockaddr_storage to{};
    socklen_t size = 0;
    if (target.find('/') != std::string::npos || target.find(':') == std::string::npos) {
        sockaddr_un local{.sun_family = AF_UNIX, .sun_path = {}};
        if (target.size() >= sizeof local.sun_path) return fail_with_errno(Operation::connect, ENAMETOOLONG, target);
        std::ranges::copy(target, local.sun_path);
        size = sizeof local;
        std::copy_n(reinterpret_cast<const char*>(&local), size, reinterpret_cast<char*>(&to));
    } else {
        const auto resolved = net::resolve(target);
        if (!resolved) return tl::unexpected(resolved.error());
        size = resolved->front().size();
        std::copy_n(reinterpret_cast<const char*>(resolved->front().data()), size, reinterpret_cast<char*>(&to));
    }
    net::Descriptor socket(::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return fail_with_errno(Operation::open, errno, target);
    wait_until(end, SO_SNDTIMEO, socket);
    if (connect(socket.number(), reinterpret_cast<const sockaddr*>(&to), size) != 0) {
        const bool late = errno == EINPROGRESS || errno == EAGAIN;
        return fail_with_errno(Operation::connect, late ? ETIMEDOUT : errno, target);
    }
    return socket;
}

// What arrives until the server closes the connection.
Result<std::string> exchange(const net::Descriptor& socket, std::string_view request, const HttpCall& call, Time end) {
    const ssize_t sent = send(socket.number(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(request.size())) return fail_with_errno(Operation::send, errno, call.target);
    std::string text;
    std::array<char, 4096> part{};
    while (true) {
        wait_until(end, SO_RCVTIMEO, socket);
        const ssize_t size = recv(socket.number(), part.data(), part.size(), 0);
        if (size == 0) return text;
        if (size < 0 && errno != EAGAIN && errno != EINTR)
            return fail_with_errno(Operation::receive, errno, call.target);
        if (size > 0) text.append(part.data(), static_cast<std::size_t>(size));
        if (text.size() > most_bytes) {
            // errors.md, none: it says what is wrong
            return fail(Operation::receive, Reason::malformed, call.target, "the answer is too long");
        }
        if (net::now() >= end) return fail_with_errno(Operation::receive, ETIMEDOUT, call.target);
    }
}

}  // namespace

Result<HttpReply> call(const HttpCall& call) {
    const Time end = net::now() + call.timeout;
    const auto socket = connected(call.target, end);
    if (!socket) return tl::unexpected(socket.error());
    const std::string key = call.key.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", call.key);
    const auto text =
        exchange(*socket,
                 fmt::format("{} {} HTTP/1.1\r\nHost: atp\r\n{}Content-Length: 0\r\nConnection: close\r\n\r\n",
                             call.method, call.path, key),
                 call, end);
    if (!text) return tl::unexpected(text.error());
    // "HTTP/1.1 200 OK", headers, an empty line, the body.
    constexpr std::string_view begin = "HTTP/1.";
    constexpr std::size_t status_at = begin.size() + 2;
    const std::size_t head = text->find("\r\n\r\n");
    const auto status = text->starts_with(begin) && head != std::string::npos
                            ? parse_whole(std::string_view(*text).substr(status_at, 3), 100, 599)
                            : std::nullopt;
    // errors.md, none: it says what is wrong
    if (!status) return fail(Operation::receive, Reason::malformed, call.target, "this is no HTTP");
    return HttpReply{.status = static_cast<int>(*status), .body = text->substr(head + 4)};
}

}  // namespace atp::metrics
