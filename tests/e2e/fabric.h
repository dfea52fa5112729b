// SPDX-License-Identifier: Apache-2.0
// What end-to-end tests share: real switches on loopback, and jobs whose ranks are threads.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "store/memory_store.h"
#include "switchd/node.h"

namespace atp::test {

// No wait of a test is longer; what is meant to succeed takes milliseconds.
inline constexpr Duration patience = std::chrono::seconds(20);

// Small, and on any free port of loopback.
[[nodiscard]] switchd::SwitchNodeConfig small_switch();
// With a pool for SwitchML as large as its table for ATP.
[[nodiscard]] switchd::SwitchNodeConfig serving_both(switchd::SwitchNodeConfig config);
// Nothing, and a failure of the test, where it does not start.
[[nodiscard]] std::unique_ptr<switchd::SwitchNode> start(const switchd::SwitchNodeConfig& config);
[[nodiscard]] std::string address_of(const switchd::SwitchNode& node);
// Aggregators of this many packets, in bytes of SwitchNodeConfig::memory_bytes.
[[nodiscard]] std::uint64_t memory_for(std::uint32_t aggregators, const switchd::SwitchNodeConfig& config);

// Two leaves under a root.
struct TwoLevels {
    explicit TwoLevels(const switchd::SwitchNodeConfig& root_config = small_switch(),
                       switchd::SwitchNodeConfig leaf_config = small_switch());

    std::unique_ptr<switchd::SwitchNode> root;
    std::unique_ptr<switchd::SwitchNode> leaves[2];
};

// Fragments of 64 lanes and a window of 16, so that small tensors already fill several windows.
[[nodiscard]] comm::Options small_options();
// The same for SwitchML.
[[nodiscard]] comm::Options switchml_options(wire::ChannelProtocol protocol = wire::ChannelProtocol::switchml);
inline constexpr std::uint32_t small_lanes = 64;
inline constexpr std::uint32_t small_window = 16;
inline constexpr std::size_t several_windows = std::size_t{small_lanes} * small_window * 5 + 3;  // elements

// The ranks of one job as threads, over one store. Rank r joins at switches[r % size].
class Job {
  public:
    Job(std::uint32_t world, std::vector<std::string> switches, comm::Options options = small_options());

    using Formed = Result<std::unique_ptr<comm::Communicator>>;

    [[nodiscard]] std::uint32_t world() const { return world_; }
    [[nodiscard]] comm::Options options_of(std::uint32_t rank) const;
    [[nodiscard]] store::MemoryStore& store() { return store_; }
    comm::Options& options() { return options_; }

    [[nodiscard]] Formed form(std::uint32_t rank);
    // All ranks at once; what came of it, by rank.
    [[nodiscard]] std::vector<Formed> form_all();
    // Likewise, and the test has failed where one of them did not form. Empty then.
    [[nodiscard]] std::vector<std::unique_ptr<comm::Communicator>> formed();
    // Each rank forms, does `body` and ends, in a thread of its own.
    void run(const std::function<void(comm::Communicator&)>& body);

  private:
    std::uint32_t world_;
    std::vector<std::string> switches_;
    comm::Options options_;
    store::MemoryStore store_;
};

// In a thread for each number below `count`; returns when all have ended.
void each(std::uint32_t count, const std::function<void(std::uint32_t)>& body);

// Whether it becomes true while the test has patience; asked again and again.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

// Waits for the operation. False, and a failure of the test that says why, where it did not succeed.
bool succeeds(const Result<comm::Handle>& work);
bool succeeds(const Result<void>& done);
// What the operation failed with; a failure of the test where it did not.
[[nodiscard]] Error error_of(const Result<comm::Handle>& work);
[[nodiscard]] testing::AssertionResult says(const Error& error, std::string_view text);

// Of all channels together, as they were published last: up to a second ago, so ask for them with eventually().
[[nodiscard]] protocol::WorkerCounters counters_of(const comm::Communicator& communicator);

}  // namespace atp::test
