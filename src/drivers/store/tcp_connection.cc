// SPDX-License-Identifier: Apache-2.0
#include "store/tcp_connection.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "net/clock.h"
#include "net/udp_options.h"

namespace atp::store {
namespace {

void set_option(int descriptor, int level, int option, int value) {
    setsockopt(descriptor, level, option, &value, sizeof value);
}

// Returns 0 after one of the events, ETIMEDOUT, or the errno of poll().
int poll_until(int descriptor, short events, Time deadline) {
    constexpr std::int64_t longest_ms = 3'600'000;
    for (;;) {
        const Time now = net::now();
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(deadline, now) - now).count();
        pollfd watched{.fd = descriptor, .events = events, .revents = 0};
        const int ready = poll(&watched, 1, static_cast<int>(std::min(left, longest_ms)));
        if (ready > 0) return 0;
        if (ready < 0 && errno != EINTR) return errno;
        if (ready == 0 && net::now() >= deadline) return ETIMEDOUT;
    }
}

int error_of(int descriptor) {
    int code = 0;
    socklen_t size = sizeof code;
    return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

// If no socket listens on a local port, the kernel may assign that port to the connecting socket, which then connects
// to itself. The socket is then closed without TIME_WAIT: otherwise the server could not bind its port afterwards.
bool let_go_of_itself(const net::Descriptor& descriptor, const wire::Address& server) {
    const auto local = net::local_address(descriptor);
    if (!local || *local != server) return false;
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(descriptor.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return true;
}

Result<net::Descriptor> connect_socket(const wire::Address& server, Time deadline) {
    const std::string peer = to_string(server);
    net::Descriptor descriptor(socket(server.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!descriptor.valid()) return fail_with_errno(Operation::connect, errno, peer);
    if (::connect(descriptor.number(), server.data(), server.size()) != 0) {
        if (errno != EINPROGRESS && errno != EINTR) return fail_with_errno(Operation::connect, errno, peer);
        const int waited = poll_until(descriptor.number(), POLLOUT, deadline);
        const int code = waited != 0 ? waited : error_of(descriptor.number());
        if (code != 0) return fail_with_errno(Operation::connect, code, peer);
    }
    if (let_go_of_itself(descriptor, server)) return fail_with_errno(Operation::connect, ECONNREFUSED, peer);
    return descriptor;
}

}  // namespace

void tune_stream(int descriptor) {
    set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, 10);  // seconds
    set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, 5);  // seconds
    set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

Result<TcpConnection> TcpConnection::open(const wire::Address& server, Time deadline) {
    auto descriptor = connect_socket(server, deadline);
    if (!descriptor) return Failure(std::move(descriptor).error());
    tune_stream(descriptor->number());
    TcpConnection connection(*std::move(descriptor), server);
    const StoreRequest hello{.kind = Kind::hello, .number = hello_number, .keys = {}, .value = {}};
    if (auto sent = connection.send(encode(hello), deadline); !sent) return Failure(std::move(sent).error());
    auto reply = connection.receive(deadline);
    if (!reply) return Failure(std::move(reply).error());
    if (reply->status != StoreStatus::done) {
        return to_failure({reply->status, reply->fields.empty() ? "" : reply->fields.front()}, to_string(server));
    }
    return connection;
}

Result<void> TcpConnection::send(std::string_view message, Time deadline) {
    while (!message.empty()) {
        const ssize_t sent = ::send(descriptor_.number(), message.data(), message.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            message.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN) {
            if (auto writable = await(POLLOUT, deadline); !writable) return writable;
        } else if (errno != EINTR) {
            return broken(errno);
        }
    }
    return {};
}

Result<Reply> TcpConnection::receive(Time deadline) {
    std::array<char, 16384> bytes;
    for (;;) {
        auto reply = next_reply();
        if (!reply) return Failure(std::move(reply).error());
        if (reply->has_value()) return **std::move(reply);
        const ssize_t received = recv(descriptor_.number(), bytes.data(), bytes.size(), 0);
        if (received > 0) {
            reader_.append({bytes.data(), static_cast<std::size_t>(received)});
        } else if (received == 0) {
            return broken(0);
        } else if (errno == EAGAIN) {
            if (auto readable = await(POLLIN, deadline); !readable) return Failure(std::move(readable).error());
        } else if (errno != EINTR) {
            return broken(errno);
        }
    }
}

Result<std::optional<Reply>> TcpConnection::next_reply() {
    const auto message = reader_.next();
    if (!message) {
        return fail(Operation::rendezvous, Reason::malformed, to_string(peer_),
                    "the peer is not a store of atp: " + message.error().text);
    }
    if (!message->has_value()) return std::nullopt;
    auto reply = decode_reply(**message);
    if (!reply) return to_failure(reply.error(), to_string(peer_));
    return *std::move(reply);
}

void TcpConnection::end() noexcept { shutdown(descriptor_.number(), SHUT_RDWR); }

Result<void> TcpConnection::await(short events, Time deadline) const {
    const int code = poll_until(descriptor_.number(), events, deadline);
    if (code == 0) return {};
    if (code != ETIMEDOUT) return broken(code);
    return fail(Operation::rendezvous, Reason::timed_out, to_string(peer_),
                // errors.md, forms, timed out: a rank does not reach the store of rank 0
                "the store does not answer: check that rank 0 runs");
}

Failure TcpConnection::broken(int code) const {
    return Failure(Error{.operation = Operation::rendezvous,
                         .reason = Reason::closed,
                         .code = code,
                         .peer = to_string(peer_),
                         .elapsed = {},
                         // errors.md, forms, closed: rank 0, which usually serves the store, ended first
                         .text = "the store closed the connection: check that rank 0 still runs"});
}

}  // namespace atp::store
