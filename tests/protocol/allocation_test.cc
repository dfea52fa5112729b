// SPDX-License-Identifier: Apache-2.0
// State machines allocate all memory at construction: no packet makes them allocate more. Only the sums of a server,
// which it takes from its budget by malloc(), come and go with the fragments in progress.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/worker.h"
#include "support/packets.h"
#include "support/random.h"
#include "switchml/switch.h"
#include "switchml/worker.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* allocate(std::size_t bytes) {
    ++allocations;
    if (void* memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}

}  // namespace

// Replace the operators of the whole program. operator new[] and the other forms call these.
void* operator new(std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace atp::testing {
namespace {

using namespace protocol;

constexpr unsigned workers = 3;
constexpr std::size_t elements = 4000;
constexpr std::size_t packet_bytes = ATP_HEADER_BYTES + 4 * ATP_LANE_BYTES;

// A star whose links deliver each packet at once or drop it, so the test itself needs no queue and allocates nothing.
class Star {
  public:
    explicit Star(std::uint32_t seed) : random_(seed) {
        EXPECT_TRUE(machine_.admit(channel_.job, channel_.token, 0));
        for (std::uint16_t rank = 0; rank < workers; ++rank) {
            inputs_.emplace_back(elements, 1.0F);
            for (std::size_t at = 0; at < elements; at += 37)
                inputs_.back()[at] = 20.0F;        // the sum of three workers overflows
            inputs_.back()[elements / 2] = 1e30F;  // too large for an integer at this scale: sent as float32
            outputs_.emplace_back(elements);
        }
        for (std::uint16_t rank = 0; rank < workers; ++rank) {
            WorkerConfig config;
            config.channel = channel_;
            config.rank = rank;
            config.place = members_.place(rank);
            workers_.push_back(std::make_unique<Worker>(config));
            tensors_.push_back(std::make_unique<FloatTensor>(inputs_[rank], outputs_[rank], 1e8F));
        }
    }

    // Runs until every worker has its sums. Returns the number of allocations during the run.
    std::uint64_t run() {
        const std::uint64_t before = allocations;
        for (unsigned rank = 0; rank < workers; ++rank)
            submitted_ &= workers_[rank]->submit(*tensors_[rank], now_).has_value();
        while (!done() && steps_ < 1'000'000) step();
        return allocations - before;
    }
    [[nodiscard]] const ServerCounters& server() const { return server_.counters(); }
    [[nodiscard]] bool done() const {
        for (const auto& worker : workers_) {
            if (!worker->idle()) return false;
        }
        return submitted_;
    }

  private:
    void step() {
        ++steps_;
        now_ += std::chrono::microseconds(100);
        std::array<std::byte, packet_bytes> buffer{};
        for (const auto& worker : workers_) {
            worker->handle_timeout(now_);
            while (const auto size = worker->poll_transmit(buffer, now_)) to_switch(buffer, *size);
            while (worker->poll_event()) {
            }
        }
        disturb();
        while (const auto sent = server_.poll_transmit(buffer)) to_switch(buffer, sent->size);
    }

    // Sends random bytes to every node.
    void disturb() {
        std::array<std::byte, 100> noise{};
        for (std::byte& byte : noise) byte = static_cast<std::byte>(random_.bits());
        if (random_.chance(0.5)) noise[0] = std::byte{ATP_VERSION};
        server_.handle_packet(noise, false, now_);
        for (const auto& worker : workers_) worker->handle_packet(noise, false, now_);
        to_switch(noise, noise.size());
    }

    void to_switch(std::span<std::byte> buffer, std::size_t size) {
        const auto room = static_cast<std::uint32_t>(buffer.size());
        PacketBuffer packet_buffer{.data = buffer.data(),
                                   .size = static_cast<std::uint32_t>(size),
                                   .capacity = room,
                                   .congested = random_.chance(0.01),
                                   .verdict = {}};
        machine_.handle_packet(packet_buffer, now_);
        const std::span<std::byte> bytes = buffer.first(packet_buffer.size);
        if (packet_buffer.verdict.route == Route::up && !random_.chance(0.05))
            server_.handle_packet(bytes, false, now_);
        if (packet_buffer.verdict.route != Route::down) return;
        for (unsigned rank = 0; rank < workers; ++rank) {
            const bool mine = packet_buffer.verdict.worker == ATP_WORKER_ALL || packet_buffer.verdict.worker == rank;
            if (mine && !random_.chance(0.05)) workers_[rank]->handle_packet(bytes, random_.chance(0.01), now_);
        }
    }

    ChannelConfig channel_{.job = 1, .token = 7, .channel = 0, .lanes = 4, .window_log2 = 5, .aggregators = 16};
    Membership members_ = *Membership::star(workers);
    Switch machine_{{.aggregators = 16, .lanes = 4, .jobs = 4}};
    Server server_{{.channel = channel_}, members_};
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::vector<float>> inputs_;
    std::vector<std::vector<float>> outputs_;
    std::vector<std::unique_ptr<FloatTensor>> tensors_;
    Random random_;
    Time now_{};
    long steps_ = 0;
    bool submitted_ = true;
};

// A SwitchML job, with random bytes to every node. Its links deliver each packet at once or drop it.
class SwitchMlStar {
  public:
    explicit SwitchMlStar(std::uint32_t seed) : random_(seed) {
        EXPECT_TRUE(machine_.admit(job_));
        for (std::uint8_t rank = 0; rank < workers; ++rank) {
            inputs_.emplace_back(elements, 1.0F);
            inputs_.back()[elements / 2] = 1e30F;
            outputs_.emplace_back(elements);
            switchml::WorkerConfig config;
            config.job = job_;
            config.rank = rank;
            workers_.push_back(std::make_unique<switchml::Worker>(config));
        }
        for (unsigned rank = 0; rank < workers; ++rank) {
            tensors_.push_back(std::make_unique<FloatTensor>(inputs_[rank], outputs_[rank], 1e8F));
        }
    }

    // Runs until every worker has its sums. Returns the number of allocations during the run.
    std::uint64_t run() {
        const std::uint64_t before = allocations;
        for (unsigned rank = 0; rank < workers; ++rank) {
            submitted_ &= workers_[rank]->submit(*tensors_[rank], now_).has_value();
        }
        for (long steps = 0; !done() && steps < 1'000'000; ++steps) step();
        return allocations - before;
    }
    [[nodiscard]] bool done() const {
        for (const auto& worker : workers_) {
            if (!worker->idle()) return false;
        }
        return submitted_;
    }
    [[nodiscard]] const switchml::SwitchCounters& counters() const { return machine_.counters(); }

  private:
    void step() {
        now_ += std::chrono::microseconds(100);
        std::array<std::byte, 64> buffer{};
        for (const auto& worker : workers_) {
            worker->handle_timeout(now_);
            while (const auto size = worker->poll_transmit(buffer, now_)) to_switch(std::span(buffer).first(*size));
            while (worker->poll_event()) {
            }
        }
        for (std::byte& byte : buffer) byte = static_cast<std::byte>(random_.bits());
        if (random_.chance(0.5)) buffer[0] = std::byte{switchml::format_byte};
        for (const auto& worker : workers_) worker->handle_packet(buffer, false, now_);
        to_switch(buffer);
    }

    void to_switch(std::span<std::byte> bytes) {
        if (random_.chance(0.05)) return;
        const switchml::Verdict verdict = machine_.handle_packet(bytes);
        for (unsigned rank = 0; rank < workers; ++rank) {
            const bool mine = verdict.route == switchml::Route::everybody ||
                              (verdict.route == switchml::Route::worker && verdict.worker == rank);
            if (mine && !random_.chance(0.05)) workers_[rank]->handle_packet(bytes, false, now_);
        }
    }

    switchml::JobConfig job_{.job = 1, .workers = workers, .slots_log2 = 3, .lanes = 8, .halves = true};
    switchml::Switch machine_{{.slots = 8, .lanes = 8}};
    std::vector<std::unique_ptr<switchml::Worker>> workers_;
    std::vector<std::vector<float>> inputs_;
    std::vector<std::vector<float>> outputs_;
    std::vector<std::unique_ptr<FloatTensor>> tensors_;
    Random random_;
    Time now_{};
    bool submitted_ = true;
};

TEST(Memory, SwitchMlAllocatesOnlyAtConstruction) {
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
        SwitchMlStar star(seed);
        EXPECT_EQ(star.run(), 0U);
        EXPECT_TRUE(star.done());
        EXPECT_GT(star.counters().overflows, 0U);
        EXPECT_GT(star.counters().count(switchml::Event::answered), 0U);
        EXPECT_GT(star.counters().count(switchml::Event::refused), 0U);
    }
}

TEST(Memory, AtpAllocatesOnlyAtConstruction) {
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
        Star star(seed);
        EXPECT_EQ(star.run(), 0U);
        EXPECT_TRUE(star.done());
        EXPECT_GT(star.server().overflowed, 0U);
        EXPECT_GT(star.server().float_fragments, 0U);
        EXPECT_GT(star.server().reacks, 0U);
    }
}

TEST(Memory, ThisTestCountsAnAllocation) {
    const std::uint64_t before = allocations;
    const auto memory = std::make_unique<std::array<std::byte, 100>>();
    EXPECT_NE(memory, nullptr);
    EXPECT_EQ(allocations - before, 1U);
}

}  // namespace
}  // namespace atp::testing
