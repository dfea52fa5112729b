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
    // The name is random, so only ranks that read it in the store find the socket.
    [[nodiscard]] static Result<HostLink> listen();
    [[nodiscard]] const std::string& name() const { return name_; }
    // Returns when `ranks - 1` other ranks have connected, or one of them never will: `hopeless` is asked at intervals.
    // Strangers are ignored.
    [[nodiscard]] Result<std::unique_ptr<HostMemory>> share(
        const HostShape& shape, const Secret& secret, Time deadline,
        const std::function<bool()>& hopeless = [] { return false; });

    [[nodiscard]] static Result<HostLink> connect(const std::string& name, unsigned rank, const Secret& secret);
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
    [[nodiscard]] Result<LinkedRank> accept_one(unsigned ranks, const Secret& secret, Time deadline);
    static void run(std::vector<LinkedRank> peers, net::Descriptor end, HostMemory& memory);

    std::string name_;
    net::Descriptor listener_;
    std::vector<LinkedRank> peers_;  // of rank 0: all others; of another rank: rank 0
    net::Descriptor end_;            // closed: the thread ends
    std::thread thread_;
};

}  // namespace atp::shm
