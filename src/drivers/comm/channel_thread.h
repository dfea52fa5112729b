// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.h"
#include "net/event_loop.h"

namespace atp::comm {

// What a thread does with each of its channels.
class ThreadedChannel : public net::Actor {
  public:
    // The loop failed. The thread does not run any more.
    virtual void handle_loop_failure(const Error& error) = 0;
};

// The I/O thread of some channels of a rank. Channels with little to do each are cheaper together: they share waits and
// wake-ups.
//
// Ownership: shared by its channels. Owns its thread and its loop; borrows each channel until leave().
// Calling order: join() for each channel, start(), then leave() for each. The thread ends with the last channel.
// Threads: join() and start() on the thread that opens the channels; leave() on this thread, or before start().
// Failure: open() returns the reason. If the loop fails later, all channels learn it.
class ChannelThread {
  public:
    [[nodiscard]] static Result<std::shared_ptr<ChannelThread>> open(const net::LoopConfig& config);
    ~ChannelThread();
    ChannelThread(const ChannelThread&) = delete;
    ChannelThread& operator=(const ChannelThread&) = delete;

    void join(ThreadedChannel& channel);
    void leave(ThreadedChannel& channel);
    void start();
    [[nodiscard]] bool started() const { return thread_.joinable(); }
    [[nodiscard]] net::EventLoop& loop() { return *loop_; }

  private:
    explicit ChannelThread(std::unique_ptr<net::EventLoop> loop) : loop_(std::move(loop)) {}

    std::unique_ptr<net::EventLoop> loop_;
    std::vector<ThreadedChannel*> channels_;
    std::thread thread_;
};

}  // namespace atp::comm
