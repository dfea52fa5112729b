// SPDX-License-Identifier: Apache-2.0
#include "apps/common/service_notice.h"

#include <fmt/format.h>
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
    return text == nullptr ? std::nullopt : parse_whole(text, 1, std::numeric_limits<std::uint32_t>::max());
}

}  // namespace

ServiceNotice::ServiceNotice() {
    const char* const socket = std::getenv("NOTIFY_SOCKET");
    if (socket == nullptr || (*socket != '/' && *socket != '@')) return;
    socket_ = socket;
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
    if (socket_.empty() || socket_.size() >= sizeof address.sun_path) return;
    std::ranges::copy(socket_, address.sun_path);
    if (socket_[0] == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
    const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return;
    (void)sendto(descriptor, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                 size);
    close(descriptor);
}

}  // namespace atp::apps
