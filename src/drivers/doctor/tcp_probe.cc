// SPDX-License-Identifier: Apache-2.0
#include "doctor/tcp_probe.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "net/clock.h"
#include "net/descriptor.h"

namespace atp::doctor {

Result<Duration> time_to_connect(const wire::Address& peer, Time deadline) {
    const std::string name = to_string(peer);
    const net::Descriptor socket(::socket(peer.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return fail_with_errno(Operation::open, errno, name);
    const Time begin = net::now();
    if (::connect(socket.number(), peer.data(), peer.size()) == 0) return net::now() - begin;
    if (errno != EINPROGRESS) return fail_with_errno(Operation::connect, errno, name);
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - net::now()).count();
        pollfd waiting{.fd = socket.number(), .events = POLLOUT, .revents = 0};
        const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
        if (ready > 0) break;
        if (ready < 0 && errno != EINTR) return fail_with_errno(Operation::wait, errno, name);
        if (net::now() >= deadline) {
            return Failure(Error{.operation = Operation::connect,
                                 .reason = Reason::timed_out,
                                 .peer = name,
                                 .elapsed = net::now() - begin,
                                 .text = "the host does not answer"});
        }
    }
    int code = 0;
    socklen_t size = sizeof code;
    if (::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) code = errno;
    if (code != 0) return fail_with_errno(Operation::connect, code, name);
    return net::now() - begin;
}

}  // namespace atp::doctor
