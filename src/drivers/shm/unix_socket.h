// SPDX-License-Identifier: Apache-2.0
// Unix sockets with abstract names: a network namespace bounds them, and no file is left behind. They prove to a
// process who is at the other end, pass descriptors, and are closed when a process ends.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "net/descriptor.h"

namespace atp::shm {

struct PeerProcess {
    pid_t pid = 0;
    uid_t user = 0;
};

// Returns when one of them is ready or at its end, or the deadline passed: Reason::timed_out.
[[nodiscard]] Result<void> wait_for_any(std::span<pollfd> watched, Time deadline);

// `name` without the zero byte that makes it abstract. All sockets block, at most until the deadline of each call.
[[nodiscard]] Result<net::Descriptor> listen_at(const std::string& name);
[[nodiscard]] Result<net::Descriptor> connect_to(const std::string& name);
[[nodiscard]] Result<net::Descriptor> accept_from(const net::Descriptor& listener, Time deadline);
[[nodiscard]] Result<PeerProcess> peer_of(const net::Descriptor& socket);

[[nodiscard]] Result<void> send_all(const net::Descriptor& socket, std::span<const std::byte> bytes);
[[nodiscard]] Result<void> receive_all(const net::Descriptor& socket, std::span<std::byte> bytes, Time deadline);
[[nodiscard]] Result<void> send_descriptor(const net::Descriptor& socket, int descriptor);
[[nodiscard]] Result<net::Descriptor> receive_descriptor(const net::Descriptor& socket, Time deadline);

}  // namespace atp::shm
