// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/event_loop.h"
#include "switchd/config.h"
#include "switchd/parent_link.h"
#include "switchd/report.h"
#include "switchd/shard_driver.h"

namespace atp::switchd {

// A software switch: shards with a thread each, behind one address.
//
// Calling order: start(); it works from then on; stop(), or the destructor, ends it, and waits for its threads.
// The first shard's socket is the node's address. It answers HELLO and STATS, and hands JOINs to the shard that their
// channel hashes to, which answers from its own address: that is where the channel's packets go from then on.
// Threads: start() and stop() from one; snapshot() from any. Failure: start() says why; failure() tells what ended a
// shard afterwards.
class SwitchNode {
  public:
    // `failed` is called on a shard's thread when it ends by itself; `elsewhere`, on any thread, for reports: what
    // works for this switch beside its own shards.
    using Elsewhere = std::function<ShardSnapshot()>;
    [[nodiscard]] static Result<std::unique_ptr<SwitchNode>> start(const SwitchNodeConfig& config,
                                                                   std::function<void()> failed = {},
                                                                   Elsewhere elsewhere = {});
    ~SwitchNode();
    SwitchNode(const SwitchNode&) = delete;
    SwitchNode& operator=(const SwitchNode&) = delete;

    void stop();
    [[nodiscard]] const wire::Address& address() const { return shards_.front()->local(); }
    [[nodiscard]] NodeSnapshot snapshot() const;
    [[nodiscard]] const SwitchNodeConfig& config() const { return config_; }
    // A shard has ended by itself: what went wrong.
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

    // A report as it was when part 0 was asked for: all parts are of one moment.
    struct KeptReport {
        std::uint32_t number = 0;
        std::string text;
    };

    SwitchNodeConfig config_;
    std::uint64_t id_;
    Time started_;
    std::vector<std::unique_ptr<net::EventLoop>> loops_;
    std::vector<std::unique_ptr<SwitchShard>> shards_;
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
