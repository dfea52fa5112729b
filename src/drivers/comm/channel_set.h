// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/channel_driver.h"
#include "comm/channel_thread.h"
#include "comm/work.h"
#include "net/transport.h"

namespace atp::comm {

// Channels of a rank that take the parts of operations in turn.
//
// Ownership: owns its channels. They share their threads.
// Calling order: open(), start(), then submit() and add_barrier(), then stop() or the destructor.
// Threads: one thread opens. One at a time calls start(), submit() and add_barrier(): all ranks need one order.
//   Any thread calls the other functions, but stop() comes last.
// Failure: open() returns the reason. Later each channel ends for itself, with an error for each of its parts.
class ChannelSet {
  public:
    // One transport for each plan, which the set takes.
    [[nodiscard]] Result<void> open(std::span<std::unique_ptr<net::Transport>> transports,
                                    std::span<const ChannelPlan> plans);
    // Begins to join. Further calls do nothing.
    void start();

    // Each slice of the work goes to the next channel.
    void submit(const Handle& work);
    // The only slice of `barrier` goes to the channel that takes the next slice.
    void add_barrier(const Handle& barrier);

    void wake();
    void abort(const Error& reason);
    void stop();

    [[nodiscard]] bool empty() const { return channels_.empty(); }
    [[nodiscard]] std::size_t size() const { return channels_.size(); }
    [[nodiscard]] const std::vector<std::unique_ptr<ChannelDriver>>& channels() const { return channels_; }

  private:
    std::vector<std::unique_ptr<ChannelDriver>> channels_;
    std::vector<std::shared_ptr<ChannelThread>> threads_;  // until start()
    std::size_t next_ = 0;
};

}  // namespace atp::comm
