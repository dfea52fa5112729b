// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/switch_report.h"
#include "endpoint/node_machine.h"
#include "net/event_loop.h"
#include "switchd/config.h"
#include "switchd/parent_link.h"
#include "switchd/report_maker.h"
#include "switchd/shard_driver.h"

namespace atp::switchd {

// Software switch: shards with one thread each, behind one address. The first shard's socket has this address. It
// passes control messages to a NodeMachine, which answers HELLO and STATS and finds the shard of each JOIN. That shard
// answers from its own address, to which the channel's packets then go.
//
// Ownership: owns its shards, their loops and threads, the link to the parent, and what makes reports.
// Calling order: start(), which starts the threads; then stop() or the destructor, which waits for them.
// Threads: one thread calls start(), set_tenants(), set_hosts(), turns() and stop(). Any thread calls drain(),
// drains(),
//   jobs(), snapshot() and failure().
// Failure: start() returns the reason. If a shard ends later by itself, failure() returns its error.
class SwitchNode {
  public:
    // `failed`: called on a shard's thread when that shard ends by itself. `report_kernel`: called on any
    // thread, for reports; returns the state of the kernel switch that works for this switch.
    using KernelReporter = std::function<client::ShardReport()>;
    [[nodiscard]] static Result<std::unique_ptr<SwitchNode>> start(const SwitchNodeConfig& config,
                                                                   std::function<void()> failed = {},
                                                                   KernelReporter report_kernel = {});
    ~SwitchNode();
    SwitchNode(const SwitchNode&) = delete;
    SwitchNode& operator=(const SwitchNode&) = delete;

    // Members that have joined stay; from now on, others meet these limits.
    void set_tenants(const std::shared_ptr<const control::Tenants>& tenants);
    // From now on, for those that ask later.
    void set_hosts(const control::HostLists& hosts);
    // While it drains, new jobs are refused. Running ones go on, and their members may join again; a job that has given
    // up its place, because it failed, is a new one.
    void drain(bool drains) { room_->drain(drains); }
    [[nodiscard]] bool drains() const { return room_->drains(); }
    // Jobs that have a place.
    [[nodiscard]] std::uint32_t jobs() const { return room_->jobs(); }
    void stop();
    [[nodiscard]] const wire::Address& address() const { return shards_.front()->local(); }
    [[nodiscard]] client::SwitchReport snapshot() const;
    [[nodiscard]] const SwitchNodeConfig& config() const { return config_; }
    // Whether each thread has begun a round since the last call, which wakes them all. So between two calls a second
    // apart, only a thread that hangs has not.
    [[nodiscard]] bool turns();
    // Error of a shard that ended by itself; nullopt: none.
    [[nodiscard]] std::optional<Error> failure() const;

  private:
    explicit SwitchNode(const SwitchNodeConfig& config);

    [[nodiscard]] Result<void> open_shards();
    void dispatch(endpoint::ControlMessage message, wire::Outbox& out, Time now);
    [[nodiscard]] std::string report(std::uint64_t hellos) const;
    void add_tenants(client::SwitchReport& report) const;

    SwitchNodeConfig config_;
    std::uint64_t id_;
    Time started_;
    std::shared_ptr<control::SwitchRoom> room_;
    std::vector<std::unique_ptr<net::EventLoop>> loops_;
    std::vector<std::unique_ptr<ShardDriver>> shards_;
    std::vector<std::uint64_t> rounds_;  // of each loop, at the last turns()
    std::unique_ptr<ParentLink> parent_;
    endpoint::NodeMachine machine_;  // on the first shard's thread
    std::unique_ptr<ReportMaker> reports_;
    std::vector<std::thread> threads_;
    std::function<void()> failed_;
    KernelReporter report_kernel_;
    std::atomic<bool> stopping_{false};
    mutable std::mutex failure_mutex_;
    std::optional<Error> failure_;
    mutable std::mutex tenants_mutex_;
    std::shared_ptr<const control::Tenants> tenants_;
};

}  // namespace atp::switchd
