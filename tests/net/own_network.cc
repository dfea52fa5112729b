// SPDX-License-Identifier: Apache-2.0
#include "own_network.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace atp::test {
namespace {

// As root, or as root of a new user namespace.
bool leave_network() { return unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0; }

std::string read_all(int descriptor) {
    std::string text;
    std::array<char, 4096> part;
    for (ssize_t bytes = 0; (bytes = read(descriptor, part.data(), part.size())) > 0;) {
        text.append(part.data(), static_cast<std::size_t>(bytes));
    }
    return text;
}

}  // namespace

bool set_loopback_mtu(int mtu) {
    const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_mtu = mtu;
    bool done = ioctl(socket, SIOCSIFMTU, &request) == 0;
    request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
    done = done && ioctl(socket, SIOCSIFFLAGS, &request) == 0;
    close(socket);
    return done;
}

std::optional<std::string> run_in_own_network(int loopback_mtu, const std::function<std::string()>& body) {
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        std::string found = leave_network() && set_loopback_mtu(loopback_mtu) ? body() : not_possible_here;
        const auto written = write(pipe_ends[1], found.data(), found.size());
        _exit(written == static_cast<ssize_t>(found.size()) ? 0 : 1);
    }
    close(pipe_ends[1]);
    std::string found = read_all(pipe_ends[0]);
    close(pipe_ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return "the child died: " + found;
    if (found == not_possible_here) return std::nullopt;
    return found;
}

}  // namespace atp::test
