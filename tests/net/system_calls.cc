// SPDX-License-Identifier: Apache-2.0
#include "system_calls.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <ctime>

namespace atp::test {

SystemCalls system_calls;

namespace {

// Number of segments of a message with a segment size; 0: it has none.
std::size_t segments_of(const msghdr& header) {
    msghdr copy = header;
    for (cmsghdr* at = CMSG_FIRSTHDR(&copy); at != nullptr; at = CMSG_NXTHDR(&copy, at)) {
        if (at->cmsg_level != SOL_UDP || at->cmsg_type != UDP_SEGMENT) continue;
        std::uint16_t segment_bytes = 0;
        std::memcpy(&segment_bytes, CMSG_DATA(at), sizeof segment_bytes);
        std::size_t bytes = 0;
        for (std::size_t part = 0; part < header.msg_iovlen; ++part) {
            bytes += header.msg_iov[part].iov_len;
        }
        return (bytes + segment_bytes - 1) / segment_bytes;
    }
    return 0;
}

// 0, or the errno with which this message fails.
int verdict_on(const msghdr& header) {
    const std::size_t segments = segments_of(header);
    if (segments == 0) return 0;
    ++system_calls.segmented;
    if (system_calls.segments_limit != 0 && segments > system_calls.segments_limit) return EINVAL;
    return system_calls.segmented_fails;
}

int fail_with(int code) {
    errno = code;
    return -1;
}

// How many of `count` messages the simulated buffer accepts.
unsigned room_for(unsigned count) {
    if (system_calls.messages_until_full < 0) return count;
    const unsigned room = std::min(count, static_cast<unsigned>(system_calls.messages_until_full));
    system_calls.messages_until_full -= static_cast<int>(room);
    return room;
}

bool interrupted() {
    if (system_calls.interruptions == 0) return false;
    --system_calls.interruptions;
    return true;
}

}  // namespace
}  // namespace atp::test

using atp::test::fail_with;
using atp::test::interrupted;
using atp::test::room_for;
using atp::test::system_calls;
using atp::test::verdict_on;

// The linker defines these names.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

int __real_sendmmsg(int, mmsghdr*, unsigned, int);
int __real_recvmmsg(int, mmsghdr*, unsigned, int, timespec*);
ssize_t __real_sendmsg(int, const msghdr*, int);
ssize_t __real_recvmsg(int, msghdr*, int);
int __real_setsockopt(int, int, int, const void*, socklen_t);
int __real_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**);
ssize_t __real_getrandom(void*, size_t, unsigned);
long __real_syscall(long, ...);

int __wrap_sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
    ++system_calls.sendmmsg;
    if (interrupted()) return fail_with(EINTR);
    if (system_calls.sendmmsg_fails != 0) return fail_with(system_calls.sendmmsg_fails);
    for (unsigned at = 0; at < count; ++at) {
        const int code = verdict_on(messages[at].msg_hdr);
        if (code == 0) continue;
        // Like the kernel: messages before the failing one are sent, and the next call reports the failure.
        return at == 0 ? fail_with(code) : __real_sendmmsg(socket, messages, at, flags);
    }
    const unsigned room = room_for(count);
    return room == 0 ? fail_with(EAGAIN) : __real_sendmmsg(socket, messages, room, flags);
}

int __wrap_recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
    ++system_calls.recvmmsg;
    if (interrupted()) return fail_with(EINTR);
    if (system_calls.recvmmsg_fails != 0) return fail_with(system_calls.recvmmsg_fails);
    return __real_recvmmsg(socket, messages, count, flags, timeout);
}

ssize_t __wrap_sendmsg(int socket, const msghdr* message, int flags) {
    ++system_calls.sendmsg;
    if (interrupted()) return fail_with(EINTR);
    if (const int code = verdict_on(*message); code != 0) return fail_with(code);
    if (room_for(1) == 0) return fail_with(EAGAIN);
    return __real_sendmsg(socket, message, flags);
}

ssize_t __wrap_recvmsg(int socket, msghdr* message, int flags) {
    ++system_calls.recvmsg;
    if (interrupted()) return fail_with(EINTR);
    return __real_recvmsg(socket, message, flags);
}

int __wrap_setsockopt(int socket, int level, int name, const void* value, socklen_t size) {
    if (system_calls.option_fails != 0 && level == system_calls.option_level && name == system_calls.option_name) {
        return fail_with(system_calls.option_fails);
    }
    return __real_setsockopt(socket, level, name, value, size);
}

// The event loop calls epoll_pwait2 by number.
long __wrap_syscall(long number, ...) {
    std::array<long, 6> values{};
    va_list list;
    va_start(list, number);
    for (long& value : values) value = va_arg(list, long);
    va_end(list);
    if (number == SYS_epoll_pwait2) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): a number is how a variable argument comes
        const auto* const timeout = reinterpret_cast<const timespec*>(values[3]);
        const bool look = timeout != nullptr && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
        ++(look ? system_calls.looks : system_calls.sleeps);
        if (system_calls.pwait2_fails != 0) return fail_with(system_calls.pwait2_fails);
    }
    return __real_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

int __wrap_getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** answers) {
    if (system_calls.getaddrinfo_fails != 0) return system_calls.getaddrinfo_fails;
    return __real_getaddrinfo(node, service, hints, answers);
}

ssize_t __wrap_getrandom(void* bytes, size_t count, unsigned flags) {
    if (interrupted()) return fail_with(EINTR);
    if (system_calls.getrandom_fails != 0) return fail_with(system_calls.getrandom_fails);
    if (system_calls.getrandom_gives < 0) return __real_getrandom(bytes, count, flags);
    if (count == 0) return 0;
    *static_cast<char*>(bytes) = static_cast<char>(system_calls.getrandom_gives);
    return 1;  // the kernel may return fewer bytes than asked for
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
