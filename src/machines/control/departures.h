// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "base/time.h"
#include "control/channel_key.h"
#include "control/host_key.h"
#include "protocol/archive.h"

namespace atp::control {

// Who had the positions of a tree that are empty now. JOINs and LEAVEs of that process which the network delayed or
// repeated are old: they must not bring it back (H66), also if its channel has ended meanwhile.
//
// A host without room may take no empty position: otherwise the switch could not remember that it left. A host that
// joins and leaves in a loop uses up its own part, so that others can still join. There are at most `most` entries, and
// one for each member that had a position before.
//
// Ownership: owns its entries, until forget_expired() removes them.
// Calling order: note() with times that do not decrease.
// Threads: none. Failure: none.
class Departures {
  public:
    static constexpr std::size_t most_entries = std::size_t{1} << 16U;
    // A host with 8 ranks on 64 channels leaves 512. All ranks of an IPv6 network of 64 bits count as one host here.
    static constexpr std::size_t most_of_host = most_entries / 4;

    explicit Departures(std::size_t most = most_entries) : most_(most) {}

    [[nodiscard]] bool has_room(const HostKey& host) const;
    // `position`: Branch::Position::key().
    void note(const ChannelKey& channel, std::uint16_t position, const HostKey& host, std::uint64_t nonce,
              std::uint32_t epoch, Time until);
    // The position has a child again.
    void forget(const ChannelKey& channel, std::uint16_t position) { entries_.erase({channel, position}); }
    // The message with this nonce and epoch is not newer than the last one of the process that had the position.
    [[nodiscard]] bool is_old(const ChannelKey& channel, std::uint16_t position, std::uint64_t nonce,
                              std::uint32_t epoch) const;
    // Returns when to call it again; never: nothing is left.
    Time forget_expired(Time now);

    // Defined in persist_join_tree.h.
    template <protocol::Archive Archive>
    void persist(Archive& archive);

  private:
    struct Departed {
        HostKey host{};
        std::uint64_t nonce = 0;
        std::uint32_t epoch = 0;
        Time until{};
    };
    using Place = std::pair<ChannelKey, std::uint16_t>;
    struct Expiry {
        Time until{};
        Place place;
        HostKey host;
    };
    void add(const Expiry& expiry);
    void sort_expiries();

    std::size_t most_;
    std::map<Place, Departed> entries_;
    std::deque<Expiry> order_;                // of all departures that were noted; the earliest first
    std::map<HostKey, std::size_t> of_host_;  // of those
};

}  // namespace atp::control
