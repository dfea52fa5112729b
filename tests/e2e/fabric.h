// SPDX-License-Identifier: Apache-2.0
// Shared by end-to-end tests: real switches on loopback, and jobs whose ranks are threads.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "comm/communicator.h"
#include "emulation/emulated_port.h"
#include "store/memory_store.h"
#include "switchd/node.h"

namespace atp::test {

// Longest wait of a test. Operations that should succeed take milliseconds.
inline constexpr Duration longest_wait = std::chrono::seconds(20);

// A switch with little memory, on any free port of loopback.
[[nodiscard]] switchd::SwitchNodeConfig small_switch();
// Puts an emulated link of this kind between the switch and each of its neighbours, in both directions.
[[nodiscard]] switchd::SwitchNodeConfig with_ports(switchd::SwitchNodeConfig config, const emulation::PortConfig& port);
// Starts a switch. If it does not start, fails the test and returns null.
[[nodiscard]] std::unique_ptr<switchd::SwitchNode> start(const switchd::SwitchNodeConfig& config);
[[nodiscard]] std::string address_of(const switchd::SwitchNode& node);
// SwitchNodeConfig::memory_bytes for `aggregators` aggregators.
[[nodiscard]] std::uint64_t memory_for(std::uint32_t aggregators, const switchd::SwitchNodeConfig& config);

// Two leaves under a root.
struct TwoLevels {
    explicit TwoLevels(const switchd::SwitchNodeConfig& root_config = small_switch(),
                       switchd::SwitchNodeConfig leaf_config = small_switch());

    std::unique_ptr<switchd::SwitchNode> root;
    std::unique_ptr<switchd::SwitchNode> leaves[2];
};

// Over the network, with fragments of 64 lanes and a window of 16, so that small tensors already fill several windows.
[[nodiscard]] comm::Options small_options();
inline constexpr std::uint32_t small_lanes = 64;
inline constexpr std::uint32_t small_window = 16;
inline constexpr std::size_t several_windows = std::size_t{small_lanes} * small_window * 5 + 3;  // elements

// The ranks of one job as threads, with one store. Rank r joins at switches[r % size].
class Job {
  public:
    Job(std::uint32_t world, std::vector<std::string> switches, comm::Options options = small_options());

    using Formed = Result<std::unique_ptr<comm::Communicator>>;

    [[nodiscard]] std::uint32_t world() const { return world_; }
    [[nodiscard]] comm::Options options_of(std::uint32_t rank) const;
    [[nodiscard]] store::MemoryStore& store() { return store_; }
    comm::Options& options() { return options_; }

    [[nodiscard]] Formed form(std::uint32_t rank);
    // Forms all ranks at once. Returns the outcomes by rank.
    [[nodiscard]] std::vector<Formed> form_all();
    // The same, but fails the test and returns nothing if a rank does not form.
    [[nodiscard]] std::vector<std::unique_ptr<comm::Communicator>> formed();
    // Each rank forms, runs `body` and ends, in a thread of its own.
    void run(const std::function<void(comm::Communicator&)>& body);

  private:
    std::uint32_t world_;
    std::vector<std::string> switches_;
    comm::Options options_;
    store::MemoryStore store_;
};

// As Job::run(), with options of each rank.
void run_with(Job& job, const std::function<comm::Options(std::uint32_t)>& options_of,
              const std::function<void(comm::Communicator&)>& body);

// Runs `body` in a thread for each number below `count`. Returns when all have ended.
void each(std::uint32_t count, const std::function<void(std::uint32_t)>& body);

// The UDP ports of this process on loopback, of ranks and switches.
[[nodiscard]] std::vector<wire::Address> open_ports();

// Polls the condition. False if it does not become true within longest_wait.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

// Waits for the operation. If it fails, returns false and fails the test with the reason.
bool succeeds(const Result<comm::Handle>& work);
bool succeeds(const Result<void>& done);
// The error of the operation; fails the test if the operation succeeds.
[[nodiscard]] Error error_of(const Result<comm::Handle>& work);
[[nodiscard]] testing::AssertionResult says(const Error& error, std::string_view text);

// Sums the values of all ranks in place.
template <class Value>
[[nodiscard]] Result<comm::Handle> sum_in_place(comm::Communicator& communicator, std::vector<Value>& values,
                                                comm::Reduction reduction = comm::Reduction::sum,
                                                Time deadline = never) {
    constexpr bool is_wide = sizeof(Value) == 8;
    constexpr auto floats = is_wide ? numeric::ElementType::float64 : numeric::ElementType::float32;
    constexpr auto integers = is_wide ? numeric::ElementType::int64 : numeric::ElementType::int32;
    return communicator.all_reduce({values.data(), values.data(), values.size()},
                                   std::is_integral_v<Value> ? integers : floats, reduction, deadline);
}
[[nodiscard]] inline Result<comm::Handle> sum_in_place(comm::Communicator& communicator, std::vector<float>& values,
                                                       Time deadline) {
    return sum_in_place(communicator, values, comm::Reduction::sum, deadline);
}

// Sum over all channels as last published, up to 1 s ago: poll with eventually().
[[nodiscard]] protocol::WorkerCounters counters_of(const comm::Communicator& communicator);

}  // namespace atp::test
