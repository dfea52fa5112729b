// SPDX-License-Identifier: Apache-2.0
// One direction of a cable, with the queue in front of it. The queue is first in, first out at a fixed rate. The
// departure of a packet is therefore known when it is queued, and the queue is a number instead of a container.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "sim/fabric.h"
#include "sim/packet_pool.h"

namespace atp::sim {

struct LinkCounters {
    std::uint64_t packets = 0;  // offered to the link
    std::uint64_t bytes = 0;    // accepted, including the overhead of the wire
    std::uint64_t lost = 0;     // by random loss or by a test
    std::uint64_t dropped = 0;  // the queue was full
    std::uint64_t marked = 0;   // CE: the queue was longer than the threshold
    std::uint64_t duplicated = 0;
    std::uint64_t reordered = 0;
};

struct LinkConfig {
    std::int64_t rate_bits_per_s = 0;  // 0: transmission takes no time
    std::uint64_t burst_bytes = 0;     // that leave at once after a pause: the size of a token bucket
    Duration delay{};
    std::uint64_t queue_bytes = 0;  // 0: unlimited
    std::uint64_t ecn_bytes = 0;    // 0: never marks
    unsigned paths = 1;
    Duration path_skew{};
    double loss = 0;       // probability per packet
    bool faulty = false;   // random faults and tests may affect packets
    bool at_host = false;  // one end is a host, whose processor handles every packet
};

// A packet in flight on a link.
struct Arrival {
    Time time;
    std::uint64_t order = 0;
    PacketId packet = 0;
    NodeId to = 0;
    bool congested = false;
    bool is_report = false;          // it reports that the port of a process is closed
    ProcessId process = no_process;  // the receiver, for packets between processes
};
static_assert(sizeof(Arrival) == 32);

// Arrivals of one path, in order of time. Only the first arrival needs an event in the EventQueue.
class ArrivalRing {
  public:
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] const Arrival& front() const { return items_[head_]; }
    [[nodiscard]] const Arrival& back() const { return items_[(head_ + size_ - 1) & (items_.size() - 1)]; }
    void push(const Arrival& arrival) {
        if (size_ == items_.size()) grow();
        items_[(head_ + size_++) & (items_.size() - 1)] = arrival;
    }
    void pop() {
        head_ = (head_ + 1) & (items_.size() - 1);
        --size_;
    }

  private:
    void grow() {
        std::vector<Arrival> larger(std::max<std::size_t>(items_.size() * 2, 16));
        for (std::size_t i = 0; i < size_; ++i) larger[i] = items_[(head_ + i) & (items_.size() - 1)];
        items_ = std::move(larger);
        head_ = 0;
    }

    std::vector<Arrival> items_;
    std::size_t head_ = 0;
    std::size_t size_ = 0;
};

class Link {
  public:
    Link(const FabricLink& ends, const LinkConfig& config)
        : ends_(ends),
          config_(config),
          ps_per_byte_(config.rate_bits_per_s == 0 ? 0 : bits_ps / config.rate_bits_per_s),
          burst_ps_(static_cast<std::int64_t>(config.burst_bytes) * ps_per_byte_) {}

    struct Departure {
        bool dropped = false;
        bool marked = false;
        Time arrival{};  // by the shortest path
    };

    struct Service {
        std::int64_t least_ps = 0;  // minimum service time, for a host whose processor is slower than the wire
        bool lossless = false;      // the queue may exceed its size; models PFC, which pauses the sender
    };

    // Queues `bytes`, which include the overhead.
    Departure enqueue(std::uint64_t bytes, Time now) { return enqueue(bytes, Service{}, now); }
    Departure enqueue(std::uint64_t bytes, const Service& service, Time now) {
        ++counters_.packets;
        const std::int64_t now_ps = now.time_since_epoch().count() * 1000;
        // The time that an idle link saved up; it is in the past while the link has tokens.
        const std::int64_t start_ps = std::max(busy_until_ps_, now_ps - burst_ps_);
        const std::uint64_t backlog = start_ps <= now_ps || ps_per_byte_ == 0 || !is_limited()
                                          ? 0
                                          : static_cast<std::uint64_t>((start_ps - now_ps) / ps_per_byte_);
        if (config_.queue_bytes != 0 && backlog + bytes > config_.queue_bytes && !service.lossless) {
            ++counters_.dropped;
            return {.dropped = true};
        }
        const bool marked = config_.ecn_bytes != 0 && backlog > config_.ecn_bytes;
        counters_.marked += marked ? 1 : 0;
        counters_.bytes += bytes;
        busy_until_ps_ = start_ps + std::max(static_cast<std::int64_t>(bytes) * ps_per_byte_, service.least_ps);
        return {.marked = marked, .arrival = std::max(idle_at(), now) + config_.delay};
    }
    // Departure of the last byte queued so far.
    [[nodiscard]] Time idle_at() const { return Time(Duration((busy_until_ps_ + 999) / 1000)); }

    void cut(bool is_cut) { is_cut_ = is_cut; }
    [[nodiscard]] bool is_cut() const { return is_cut_; }

    [[nodiscard]] const FabricLink& ends() const { return ends_; }
    [[nodiscard]] const LinkConfig& config() const { return config_; }
    [[nodiscard]] LinkCounters& counters() { return counters_; }
    [[nodiscard]] const LinkCounters& counters() const { return counters_; }

    static constexpr std::int64_t bits_ps = 8'000'000'000'000;  // picoseconds per byte at 1 bit/s

  private:
    // The length of its queue matters.
    [[nodiscard]] bool is_limited() const { return config_.queue_bytes != 0 || config_.ecn_bytes != 0; }

    FabricLink ends_;
    LinkConfig config_;
    std::int64_t ps_per_byte_;
    std::int64_t burst_ps_;
    std::int64_t busy_until_ps_ = 0;
    bool is_cut_ = false;
    LinkCounters counters_;
};

}  // namespace atp::sim
