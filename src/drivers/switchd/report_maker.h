// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "endpoint/node_machine.h"
#include "net/event_loop.h"
#include "switchd/shard_driver.h"

namespace atp::switchd {

// Makes the reports that a NodeMachine asks for, on a thread of its own: the text of 256 channels takes milliseconds,
// in which the thread of the first shard would handle no packet.
//
// Ownership: owns the thread, which begins with the first report. Borrows the machine, the first shard, whose outbox
//   takes the answers, and the loop of both.
// Calling order: take(), then the loop runs it. The destructor waits for a report that is being made.
// Threads: the loop's; `make` is called on its own.
// Failure: none.
class ReportMaker final : public net::Actor {
  public:
    // `hellos`: as the machine had counted them when the report was asked for.
    using Make = std::function<std::string(std::uint64_t hellos)>;

    ReportMaker(endpoint::NodeMachine& machine, ShardDriver& shard, net::EventLoop& loop, Make make);
    ~ReportMaker() override;

    void take();

    void handle_ready(int /*descriptor*/, net::Ready /*ready*/, Time /*now*/) override {}
    void handle_timeout(Time now) override;
    void handle_wake(Time now) override;
    [[nodiscard]] Time poll_timeout() const override { return machine_.poll_timeout(); }

  private:
    void run(const std::stop_token& stop);

    endpoint::NodeMachine& machine_;
    ShardDriver& shard_;
    net::EventLoop& loop_;
    Make make_;
    std::mutex mutex_;  // guards the two that follow
    std::optional<std::uint64_t> asked_;
    std::optional<std::string> made_;
    std::condition_variable_any changed_;
    std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace atp::switchd
