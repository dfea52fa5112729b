// SPDX-License-Identifier: Apache-2.0
// Workers of a job, and the position of each in the two levels of bitmaps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace atp::protocol {

// A unit is a rack of workers behind its own switch, or one direct worker. Each unit has one bit of bitmap1. A direct
// worker is behind the switch of the server, starts at hop 1 and has its own bit.
struct Unit {
    std::vector<std::uint16_t> ranks;  // member m has bit m of bitmap0
    bool direct = false;
};

// Position of one worker in the tree.
struct Place {
    std::uint8_t hop = 0;     // level at which its gradients start
    std::uint8_t unit = 0;    // bit of bitmap1
    std::uint8_t member = 0;  // bit of bitmap0
    std::uint32_t mask0 = 0;  // all members of the unit
    std::uint32_t mask1 = 0;  // all units of the job
};

// Units of a job, and the position of each rank.
//
// Ownership: a value.
// Threads: immutable after construction, so any thread may read it.
// Failure: make() returns nothing for units that are not well-formed.
class Membership {
  public:
    // Ranks must be 0..n-1, each in exactly one unit. At most 32 units of at most 32 members; a direct unit has one.
    [[nodiscard]] static std::optional<Membership> make(std::vector<Unit> units);
    // One unit: up to 32 workers behind one switch.
    [[nodiscard]] static std::optional<Membership> star(unsigned workers);
    // Racks of equal size, each behind its own switch.
    [[nodiscard]] static std::optional<Membership> racks(unsigned racks, unsigned workers_each);

    [[nodiscard]] unsigned workers() const { return static_cast<unsigned>(places_.size()); }
    [[nodiscard]] unsigned units() const { return static_cast<unsigned>(units_.size()); }
    [[nodiscard]] const Unit& unit(unsigned index) const { return units_[index]; }
    [[nodiscard]] const Place& place(std::uint16_t rank) const { return places_[rank]; }
    [[nodiscard]] std::uint32_t unit_mask(unsigned index) const { return unit_masks_[index]; }
    [[nodiscard]] std::uint32_t all_units() const { return all_units_; }
    [[nodiscard]] std::uint16_t rank_of(unsigned unit, unsigned member) const { return units_[unit].ranks[member]; }

  private:
    explicit Membership(std::vector<Unit> units);

    std::vector<Unit> units_;
    std::vector<Place> places_;
    std::vector<std::uint32_t> unit_masks_;
    std::uint32_t all_units_ = 0;
};

}  // namespace atp::protocol
