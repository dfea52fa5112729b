// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/spin_policy.h"
#include "comm/work.h"
#include "protocol/host_group.h"
#include "shm/host_link.h"
#include "shm/host_memory.h"
#include "tensor/host_part.h"

namespace atp::comm {

// How the ranks of a host take part in a job that has other hosts.
struct HostNetwork {
    tensor::ChunkRules chunks;
    // Of the rank that speaks for its host: takes each chunk, in order.
    std::function<void(const Handle& work, std::uint64_t chunk)> send{};
};

struct HostPlan {
    std::unique_ptr<shm::HostMemory> memory;
    std::optional<shm::HostLink> link;     // nullopt: the only rank
    std::vector<std::uint16_t> ranks;      // numbers in the job
    std::optional<HostNetwork> network{};  // nullopt: there are no other hosts
    double scale = 1e8;
    bool spins = false;                         // before it sleeps: each rank has a core of its own
    std::function<void(const Error&)> ended{};  // called once, if an operation fails
};

// Drives one rank's HostGroup: copies lanes, adds, sleeps, and ends works. A caller that waits for its work drives
// itself, so that a small operation needs no other thread; a thread drives all other works.
//
// Ownership: owns the memory, the link and the thread. Shares each Work with the caller.
// Calling order: start(); submit() any number of times; then stop() or the destructor.
// Threads: any. At most one drives at a time.
// Failure: if an operation fails, or a rank is lost, all works under way and all later ones end with an error.
class HostDriver final : public WorkAttendant, public std::enable_shared_from_this<HostDriver> {
  public:
    [[nodiscard]] static std::shared_ptr<HostDriver> start(HostPlan plan);
    ~HostDriver() override;
    HostDriver(const HostDriver&) = delete;
    HostDriver& operator=(const HostDriver&) = delete;

    // `work` has one slice. `alignment`: chunks begin at multiples of it.
    void submit(const Handle& work, std::uint64_t alignment);
    // A tensor has more elements ready than before.
    void wake();
    void abort(const Error& reason);
    void stop();

    void attend(Work& work, Time until) override;
    void continue_on_thread() override;

    // To and from the memory, by this rank.
    [[nodiscard]] std::uint64_t copied_bytes() const { return copied_bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] unsigned ranks() const { return memory_->shape().ranks; }
    // Most lanes of a chunk.
    [[nodiscard]] std::uint64_t chunk_lanes() const { return memory_->shape().chunk_lanes; }

  private:
    struct Part {
        Handle work;
        tensor::HostPart chunks;
    };
    struct Submission {
        Handle work;
        std::uint64_t alignment = 1;
    };
    explicit HostDriver(HostPlan plan);
    void run();
    // Drives until `stop` returns true. `until`: no sleep lasts longer; the caller's `stop` looks at the time.
    template <class Stop>
    void drive(Time until, const Stop& stop);
    // Lets the thread go on with what the caller leaves.
    void end_drive();
    [[nodiscard]] bool try_begin_drive() { return !driving_.exchange(true); }
    void take_submissions();
    [[nodiscard]] bool next_ready();
    [[nodiscard]] bool perform(const protocol::HostAction& action);
    void wait(const protocol::HostAction& action, Time until);
    // True: the state of the slot is not `seen_` any more.
    [[nodiscard]] bool look_for_change(unsigned slot, Time until) const;
    void send(const protocol::HostAction& action);
    void notify(unsigned slot);
    void count_copy(std::uint64_t bytes) { copied_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
    void finish_stored();
    void call_thread();

    [[nodiscard]] Part& part_of(std::uint64_t chunk);

    void fail(const Error& error);

    std::unique_ptr<shm::HostMemory> memory_;
    std::optional<shm::HostLink> link_;
    bool spins_;
    std::function<void(const Error&)> on_end_;
    std::optional<HostNetwork> network_;
    tensor::HostRules rules_;
    std::vector<tensor::ChunkPlaces> places_;  // by slot

    // Of the thread that drives:
    protocol::HostGroup group_;
    std::deque<Part> parts_;  // under way, in order
    bool failed_ = false;
    std::uint32_t seen_ = 0;  // state of the slot that the group would wait for
    SpinPolicy spin_;

    std::atomic<std::uint64_t> copied_bytes_{0};
    std::atomic<bool> driving_{false};
    std::atomic<bool> thread_needed_{false};  // a work needs the thread
    std::atomic<unsigned> sleeps_at_{0};      // slot whose notify() wakes the one that drives
    std::atomic<std::size_t> open_works_{0};  // submitted works that have not ended

    std::mutex mutex_;
    std::condition_variable called_;
    std::deque<Submission> submissions_;
    std::optional<Error> error_;  // no work can succeed any more
    std::optional<Error> abort_;
    bool thread_called_ = false;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace atp::comm
