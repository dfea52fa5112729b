// SPDX-License-Identifier: Apache-2.0
#include "apps/common/service_notice.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>

#include "base/units.h"

namespace atp::apps {
namespace {

std::optional<std::uint64_t> number_of(const char* variable) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? std::nullopt : parse_whole(text, 1, std::numeric_limits<std::int64_t>::max());
}

}  // namespace

Result<std::optional<int>> socket_of_manager() {
    constexpr int first_of_manager = 3;
    const auto process = number_of("LISTEN_PID");
    const auto count = number_of("LISTEN_FDS");
    if (!process || *process != static_cast<std::uint64_t>(getpid()) || !count) return std::nullopt;
    for (const char* const variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(variable);
    const auto option = [](int level, int name) {
        int value = -1;
        socklen_t size = sizeof value;
        return getsockopt(first_of_manager, level, name, &value, &size) == 0 ? value : -1;
    };
    const int domain = option(SOL_SOCKET, SO_DOMAIN);
    const bool is_ip = domain == AF_INET || (domain == AF_INET6 && option(IPPROTO_IPV6, IPV6_V6ONLY) == 1);
    if (*count != 1 || !is_ip || option(SOL_SOCKET, SO_TYPE) != SOCK_DGRAM) {
        return fail(
            Operation::bind, Reason::malformed, "LISTEN_FDS",
            // errors.md, starts, malformed: the socket unit names one ListenDatagram, with BindIPv6Only for IPv6
            "the service manager gives other sockets than one for UDP over IPv4 or IPv6 only: name one address "
            "in ListenDatagram");
    }
    fcntl(first_of_manager, F_SETFD, FD_CLOEXEC);
    return first_of_manager;
}

ServiceNotice::ServiceNotice() {
    const char* const socket = std::getenv("NOTIFY_SOCKET");
    if (socket == nullptr || (*socket != '/' && *socket != '@')) return;
    manager_ = socket;
    socket_ = net::Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto process = number_of("WATCHDOG_PID");
    if (process && *process != static_cast<std::uint64_t>(getpid())) return;  // it watches another one
    if (const auto limit = number_of("WATCHDOG_USEC")) interval_ = std::chrono::microseconds(*limit / 2);
}

void ServiceNotice::ready(std::string_view status) const { send(fmt::format("READY=1\nSTATUS={}", status)); }

void ServiceNotice::reloading() const {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", std::int64_t{1'000'000} * now.tv_sec + now.tv_nsec / 1000));
}

void ServiceNotice::stopping() const { send("STOPPING=1"); }

void ServiceNotice::send(std::string_view state) const {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    if (manager_.empty() || manager_.size() >= sizeof address.sun_path) return;
    std::ranges::copy(manager_, address.sun_path);
    if (manager_[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + manager_.size());
    (void)sendto(socket_.number(), state.data(), state.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace atp::apps
