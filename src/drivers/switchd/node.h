// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/switch_report.h"
#include "net/event_loop.h"
#include "switchd/config.h"
#include "switchd/parent_link.h"
#include "switchd/shard_driver.h"

namespace atp::switchd {

// Software switch: shards with one thread each, behind one address. The first shard's socket has this address. It
// answers HELLO and STATS, and passes each JOIN to the shard that the channel hashes to. That shard answers from its
// own address, to which the channel's packets then go.
//
// Ownership: owns its shards, their loops and threads, and the link to the parent.
// Calling order: start(), which starts the threads; then stop() or the destructor, which waits for them.
// Threads: one thread calls start() and stop(). Any thread calls snapshot() and failure().
// Failure: start() returns the reason. If a shard ends later by itself, failure() returns its error.
class SwitchNode {
  public:
    // `failed`: called on a shard's thread when that shard ends by itself. `elsewhere`: called on any thread, for
    // reports; returns the state of the kernel switch that works for this switch.
    using Elsewhere = std::function<client::ShardReport()>;
    [[nodiscard]] static Result<std::unique_ptr<SwitchNode>> start(const SwitchNodeConfig& config,
                                                                   std::function<void()> failed = {},
                                                                   Elsewhere elsewhere = {});
    ~SwitchNode();
    SwitchNode(const SwitchNode&) = delete;
    SwitchNode& operator=(const SwitchNode&) = delete;

    void stop();
    [[nodiscard]] const wire::Address& address() const { return shards_.front()->local(); }
    [[nodiscard]] client::SwitchReport snapshot() const;
    [[nodiscard]] const SwitchNodeConfig& config() const { return config_; }
    // Error of a shard that ended by itself; nullopt: none.
    [[nodiscard]] std::optional<Error> failure() const;

  private:
    explicit SwitchNode(const SwitchNodeConfig& config);

    [[nodiscard]] Result<void> open_shards();
    void dispatch(std::span<const std::byte> bytes, const wire::Address& from, wire::Ecn ecn);
    void route_to_shard(std::span<const std::byte> bytes, const wire::Address& from);
    void refuse_version(std::uint8_t version, const wire::Address& to, std::size_t question_bytes);
    void answer_hello(std::span<const std::byte> bytes, const wire::Address& from, wire::Ecn ecn);
    void answer_stats(std::span<const std::byte> bytes, const wire::Address& from);
    void reply(const wire::Address& to, std::span<const std::byte> answer, std::size_t question_bytes,
               wire::Ecn ecn = wire::Ecn::not_capable);

    // Report at the time of the request for part 0, so that all parts describe one moment.
    struct KeptReport {
        std::uint32_t number = 0;
        std::string text;
    };

    SwitchNodeConfig config_;
    std::uint64_t id_;
    Time started_;
    std::vector<std::unique_ptr<net::EventLoop>> loops_;
    std::vector<std::unique_ptr<ShardDriver>> shards_;
    std::unique_ptr<ParentLink> parent_;
    std::vector<std::thread> threads_;
    std::vector<KeptReport> reports_;
    std::uint32_t next_report_ = 1;
    std::function<void()> failed_;
    Elsewhere elsewhere_;
    std::atomic<bool> stopping_{false};
    mutable std::mutex failure_mutex_;
    std::optional<Error> failure_;
};

}  // namespace atp::switchd
