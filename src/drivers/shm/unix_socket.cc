// SPDX-License-Identifier: Apache-2.0
#include "shm/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "net/clock.h"

namespace atp::shm {
namespace {

constexpr int backlog = 4096;  // the kernel's own limit may be lower

Failure failed(Operation operation) { return fail_with_errno(operation, errno, "Unix socket"); }

struct AbstractName {
    explicit AbstractName(const std::string& name) {
        address.sun_family = AF_UNIX;
        const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
        std::memcpy(address.sun_path + 1, name.data(), length);
        bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    }
    [[nodiscard]] const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address); }

    sockaddr_un address{};
    socklen_t bytes = 0;
};

// One byte, with room for a descriptor.
struct DescriptorMessage {
    DescriptorMessage() {
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control;
        header.msg_controllen = sizeof control;
    }
    DescriptorMessage(const DescriptorMessage&) = delete;
    DescriptorMessage& operator=(const DescriptorMessage&) = delete;

    std::byte payload{1};
    iovec part{.iov_base = &payload, .iov_len = 1};
    alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int))]{};
    msghdr header{};
};

Result<net::Descriptor> open_socket() {
    net::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return failed(Operation::open);
    return socket;
}

Result<void> wait_readable(const net::Descriptor& socket, Time deadline) {
    pollfd watched{.fd = socket.number(), .events = POLLIN, .revents = 0};
    return wait_for_any({&watched, 1}, deadline);
}

}  // namespace

Result<void> wait_for_any(std::span<pollfd> watched, Time deadline) {
    while (true) {
        const Duration left = std::clamp<Duration>(deadline - net::now(), Duration::zero(), net::longest_sleep);
        const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
        const int ready = poll(watched.data(), watched.size(), static_cast<int>(milliseconds));
        if (ready > 0) return {};
        if (ready < 0 && errno != EINTR) return failed(Operation::wait);
        if (ready == 0) return fail(Operation::wait, Reason::timed_out, "Unix socket", "no answer");
    }
}

Result<net::Descriptor> listen_at(const std::string& name) {
    auto socket = open_socket();
    if (!socket) return socket;
    const AbstractName at(name);
    if (bind(socket->number(), at.generic(), at.bytes) != 0) return failed(Operation::bind);
    if (listen(socket->number(), backlog) != 0) return failed(Operation::configure);
    return socket;
}

Result<net::Descriptor> connect_to(const std::string& name) {
    auto socket = open_socket();
    if (!socket) return socket;
    const AbstractName at(name);
    if (connect(socket->number(), at.generic(), at.bytes) != 0) return failed(Operation::connect);
    return socket;
}

Result<net::Descriptor> accept_from(const net::Descriptor& listener, Time deadline) {
    if (auto ready = wait_readable(listener, deadline); !ready) return tl::unexpected(ready.error());
    net::Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return failed(Operation::connect);
    return socket;
}

Result<PeerProcess> peer_of(const net::Descriptor& socket) {
    ucred credentials{};
    socklen_t bytes = sizeof credentials;
    if (getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) {
        return failed(Operation::configure);
    }
    return PeerProcess{.pid = credentials.pid, .user = credentials.uid};
}

// A few bytes always fit the empty buffer of a socket.
Result<void> send_all(const net::Descriptor& socket, std::span<const std::byte> bytes) {
    const ssize_t sent = send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(bytes.size())) return failed(Operation::send);
    return {};
}

Result<void> receive_all(const net::Descriptor& socket, std::span<std::byte> bytes, Time deadline) {
    while (!bytes.empty()) {
        if (auto ready = wait_readable(socket, deadline); !ready) return ready;
        const ssize_t got = recv(socket.number(), bytes.data(), bytes.size(), 0);
        if (got == 0) return fail(Operation::receive, Reason::closed, "Unix socket", "the other process has ended");
        if (got < 0 && errno != EAGAIN && errno != EINTR) return failed(Operation::receive);
        if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return {};
}

Result<void> send_descriptor(const net::Descriptor& socket, int descriptor) {
    DescriptorMessage message;
    cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    if (sendmsg(socket.number(), &message.header, MSG_NOSIGNAL) != 1) return failed(Operation::send);
    return {};
}

Result<net::Descriptor> receive_descriptor(const net::Descriptor& socket, Time deadline) {
    if (auto ready = wait_readable(socket, deadline); !ready) return tl::unexpected(ready.error());
    DescriptorMessage message;
    // CMSG_SPACE() has room for a second descriptor, which the kernel would install without an owner.
    message.header.msg_controllen = CMSG_LEN(sizeof(int));
    if (recvmsg(socket.number(), &message.header, MSG_CMSG_CLOEXEC) != 1) return failed(Operation::receive);
    const cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) {
        return fail(Operation::receive, Reason::malformed, "Unix socket", "the message has no descriptor");
    }
    int number = -1;
    std::memcpy(&number, CMSG_DATA(header), sizeof number);
    net::Descriptor descriptor(number);
    if ((message.header.msg_flags & MSG_CTRUNC) != 0) {
        return fail(Operation::receive, Reason::malformed, "Unix socket", "the message has more than one descriptor");
    }
    return descriptor;
}

}  // namespace atp::shm
