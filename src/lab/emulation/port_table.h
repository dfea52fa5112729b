// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "emulation/emulated_port.h"
#include "wire/address.h"

namespace atp::emulation {

struct PortTableConfig {
    PortConfig in{};                                  // from each peer
    PortConfig out{};                                 // to each peer
    std::uint32_t peers = 1024;                       // maximum number of peers with ports at a time
    Duration forget_after{std::chrono::seconds(10)};  // time without a packet after which a pair of ports is removed
    std::uint64_t seed = 1;                           // of all losses
    std::uint64_t lossy_peers = UINT64_MAX;           // only packets of this many peers, the first ones, can be lost
};

// False: a table of this configuration passes every packet unchanged.
[[nodiscard]] bool emulates(const PortTableConfig& config);

struct PortPairCounters {
    PortCounters in;
    PortCounters out;
};

struct PeerPorts {
    wire::Address peer;
    PortPairCounters counters;
};

// The emulated ports of a switch: a pair for each peer address. The first packet from or to a peer creates its pair.
// The table removes a pair after an idle time, when its queues are empty. The n-th peer since the start loses the same
// packets in every run with the same seed, whatever its address is.
//
// Ownership: owns all ports, allocated at construction. A pointer from in() or out() is valid until the next non-const
//   call.
// Calling order: in() or out() for each packet, then admit() on the port; forget_idle() from time to time, at most once
//   per round. `now` must not decrease.
// Threads: one.
// Failure: in() and out() return nullptr for a new peer if the table is full, like a switch without a free port. The
//   caller drops the packet; refused() counts it.
class PortTable {
  public:
    explicit PortTable(const PortTableConfig& config);

    [[nodiscard]] EmulatedPort* in(const wire::Address& from, Time now);
    [[nodiscard]] EmulatedPort* out(const wire::Address& to, Time now);
    // Removes idle peers, the least recently used first, and looks at no more than one peer that stays.
    void forget_idle(Time now);

    [[nodiscard]] std::uint32_t size() const { return size_; }
    [[nodiscard]] std::uint64_t refused() const { return refused_; }
    // Includes removed peers.
    [[nodiscard]] PortPairCounters totals() const;
    // The known peers, the most recently used first.
    [[nodiscard]] std::vector<PeerPorts> peers() const;

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    struct Entry {
        wire::Address peer;
        EmulatedPort in;
        EmulatedPort out;
        Time used{};
        std::uint32_t chained = none;  // next entry of the same bucket, or next free entry
        std::uint32_t newer = none;    // more recently used entry
        std::uint32_t older = none;
    };

    [[nodiscard]] Entry* entry_of(const wire::Address& peer, Time now);
    [[nodiscard]] std::uint32_t& bucket_of(const wire::Address& peer) {
        return buckets_[peer.hash() & (buckets_.size() - 1)];
    }
    [[nodiscard]] std::uint32_t find(const wire::Address& peer);
    [[nodiscard]] std::uint32_t create(const wire::Address& peer, Time now);
    [[nodiscard]] bool forgettable(const Entry& entry, Time now) const;
    void forget(std::uint32_t at);
    void put_first(std::uint32_t at);
    void take_out(std::uint32_t at);

    PortTableConfig config_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> buckets_;  // size is a power of two; first entry of each bucket
    std::uint32_t free_ = none;
    std::uint32_t newest_ = none;
    std::uint32_t oldest_ = none;
    std::uint32_t size_ = 0;
    std::uint64_t created_ = 0;
    std::uint64_t refused_ = 0;
    PortPairCounters forgotten_;
};

}  // namespace atp::emulation
