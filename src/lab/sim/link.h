// SPDX-License-Identifier: Apache-2.0
// One direction of a cable with the queue in front of it. First in, first out at a fixed rate, so a packet's departure
// is known when it is queued: the queue is a number, not a container.
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
    std::uint64_t packets = 0;  // offered
    std::uint64_t bytes = 0;    // that left, with the overhead of the wire
    std::uint64_t lost = 0;     // by chance, or by a test
    std::uint64_t dropped = 0;  // the queue was full
    std::uint64_t marked = 0;   // CE: the queue was beyond the threshold
    std::uint64_t duplicated = 0;
    std::uint64_t reordered = 0;
};

struct LinkConfig {
    std::int64_t rate_bits_per_s = 0;  // 0: no wire, no time
    Duration delay{};
    std::uint64_t queue_bytes = 0;  // 0: nothing is dropped here
    std::uint64_t ecn_bytes = 0;    // 0: nothing is marked here
    unsigned paths = 1;
    Duration path_skew{};
    double loss = 0;       // probability for each packet
    bool faulty = false;   // chance and tests may harm what passes
    bool at_host = false;  // one of its ends: a processor works for every packet
};

// A packet on its way to the end of a link.
struct Arrival {
    Time time;
    std::uint64_t order = 0;
    PacketId packet = 0;
    NodeId to = 0;
    bool congested = false;
};
static_assert(sizeof(Arrival) == 32);

// Arrivals of one path in order of time: only the first of them needs to be in the queue of events.
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
          ps_per_byte_(config.rate_bits_per_s == 0 ? 0 : bits_ps / config.rate_bits_per_s) {}

    struct Departure {
        bool dropped = false;
        bool marked = false;
        Time arrival{};  // on the shortest path
    };

    struct Service {
        std::int64_t least_ps = 0;  // where a processor is slower than the wire
        bool lossless = false;      // the queue may grow beyond its size: what pauses upstream would prevent
    };

    // Queues `bytes`, overhead included.
    Departure enqueue(std::uint64_t bytes, Time now) { return enqueue(bytes, Service{}, now); }
    Departure enqueue(std::uint64_t bytes, const Service& service, Time now) {
        ++counters_.packets;
        const std::int64_t now_ps = now.time_since_epoch().count() * 1000;
        const std::int64_t start_ps = std::max(busy_until_ps_, now_ps);
        const std::uint64_t backlog =
            ps_per_byte_ == 0 ? 0 : static_cast<std::uint64_t>((start_ps - now_ps) / ps_per_byte_);
        if (config_.queue_bytes != 0 && backlog + bytes > config_.queue_bytes && !service.lossless) {
            ++counters_.dropped;
            return {.dropped = true};
        }
        const bool marked = config_.ecn_bytes != 0 && backlog > config_.ecn_bytes;
        counters_.marked += marked ? 1 : 0;
        counters_.bytes += bytes;
        busy_until_ps_ = start_ps + std::max(static_cast<std::int64_t>(bytes) * ps_per_byte_, service.least_ps);
        return {.marked = marked, .arrival = idle_at() + config_.delay};
    }
    // When everything queued until now has left.
    [[nodiscard]] Time idle_at() const { return Time(Duration((busy_until_ps_ + 999) / 1000)); }

    [[nodiscard]] const FabricLink& ends() const { return ends_; }
    [[nodiscard]] const LinkConfig& config() const { return config_; }
    [[nodiscard]] LinkCounters& counters() { return counters_; }
    [[nodiscard]] const LinkCounters& counters() const { return counters_; }

    std::uint64_t last_copy = 0;  // of the multicast that crossed it last: one copy a link

    static constexpr std::int64_t bits_ps = 8'000'000'000'000;  // eight bits at one bit a second

  private:
    FabricLink ends_;
    LinkConfig config_;
    std::int64_t ps_per_byte_;
    std::int64_t busy_until_ps_ = 0;
    LinkCounters counters_;
};

}  // namespace atp::sim
