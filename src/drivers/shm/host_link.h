// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/siphash.h"
#include "base/time.h"
#include "net/descriptor.h"
#include "shm/host_memory.h"

namespace atp::shm {

// Sockets between rank 0 of a host and its other ranks. They pass the memory, prove both ends to each other, and show
// at once that a process has ended.
//
// Ownership: owns its sockets and its thread.
// Calling order: rank 0: listen(), then share(). Another rank: connect(), then adopt(). Then watch() once.
// Threads: one calls these functions; watch() starts another.
// Failure: whatever prevents shared memory is an Error, whose text says why.
class HostLink {
  public:
    // Every local user sees the name in /proc/net/unix and may connect. Only a process of the same user that knows the
    // secret gets the memory.
    [[nodiscard]] static Result<HostLink> listen();
    [[nodiscard]] const std::string& name() const { return name_; }
    // Returns when `ranks - 1` other ranks have connected, or one of them never will: `hopeless` is asked at intervals.
    // Strangers are ignored, and delay nobody.
    [[nodiscard]] Result<std::unique_ptr<HostMemory>> share(
        const HostShape& shape, const Secret& secret, Time deadline,
        const std::function<bool()>& hopeless = [] { return false; });

    // Shows the secret to nobody but a process of the same user. If strangers fill the queue of the socket, tries again
    // until the deadline: rank 0 empties it in share().
    [[nodiscard]] static Result<HostLink> connect(const std::string& name, unsigned rank, const Secret& secret,
                                                  Time deadline = {});
    [[nodiscard]] Result<std::unique_ptr<HostMemory>> adopt(const HostShape& shape, unsigned rank, const Secret& secret,
                                                            Time deadline);

    // Marks a rank whose process ends, and wakes all who wait. Borrows `memory` until stop().
    void watch(HostMemory& memory);
    void stop();

    HostLink(HostLink&&) noexcept = default;
    HostLink& operator=(HostLink&&) noexcept = default;
    ~HostLink() { stop(); }

  private:
    struct LinkedRank {
        unsigned rank = 0;
        net::Descriptor socket;
    };

    HostLink() = default;
    [[nodiscard]] bool has_peer(std::uint64_t rank) const;
    static void run(std::vector<LinkedRank> peers, net::Descriptor end, HostMemory& memory);

    std::string name_;
    net::Descriptor listener_;
    std::vector<LinkedRank> peers_;  // of rank 0: all others; of another rank: rank 0
    net::Descriptor end_;            // closed: the thread ends
    std::thread thread_;
};

}  // namespace atp::shm
