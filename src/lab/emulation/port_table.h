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
    std::uint32_t peers = 1024;                       // known at once
    Duration forget_after{std::chrono::seconds(10)};  // without a packet either way
    std::uint64_t seed = 1;                           // of all losses
    std::uint64_t lossy_peers = UINT64_MAX;           // only so many lose packets: those that came first
};

// False: without a table everything would pass just the same.
[[nodiscard]] bool emulates(const PortTableConfig& config);

struct PortPairCounters {
    PortCounters in;
    PortCounters out;
};

struct PeerPorts {
    wire::Address peer;
    PortPairCounters counters;
};

// The emulated ports of a switch: a pair for each peer's address, made when a packet first comes from it or goes to it,
// forgotten when none did for a while and its queues are empty. The n-th peer since the start loses the same packets in
// every run with the same seed, whatever its address.
//
// Calling order: in() or out() for each packet, and admit() it there; forget_idle() now and then, at most once a round.
// Time must not run backwards.
// Owns: all ports, claimed at construction; what in() and out() give holds until the next call that is not const.
// Threads: one.
// Failure: in() and out() are nullptr for a new peer where the table is full of peers that are not to be forgotten yet:
// a switch without a free port. The caller drops the packet; refused() counts it.
class PortTable {
  public:
    explicit PortTable(const PortTableConfig& config);

    [[nodiscard]] EmulatedPort* in(const wire::Address& from, Time now);
    [[nodiscard]] EmulatedPort* out(const wire::Address& to, Time now);
    // Looks at one peer that may stay, whatever their number.
    void forget_idle(Time now);

    [[nodiscard]] std::uint32_t size() const { return size_; }
    [[nodiscard]] std::uint64_t refused() const { return refused_; }
    // Of forgotten peers too.
    [[nodiscard]] PortPairCounters totals() const;
    // Those that are known, the one with the latest packet first.
    [[nodiscard]] std::vector<PeerPorts> peers() const;

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    struct Entry {
        wire::Address peer;
        EmulatedPort in;
        EmulatedPort out;
        Time used{};
        std::uint32_t chained = none;  // the next of the same bucket, or the next that is free
        std::uint32_t newer = none;    // in order of use
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
    std::vector<std::uint32_t> buckets_;  // a power of two; the first entry of each
    std::uint32_t free_ = none;
    std::uint32_t newest_ = none;
    std::uint32_t oldest_ = none;
    std::uint32_t size_ = 0;
    std::uint64_t created_ = 0;
    std::uint64_t refused_ = 0;
    PortPairCounters forgotten_;
};

}  // namespace atp::emulation
