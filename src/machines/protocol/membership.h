// SPDX-License-Identifier: Apache-2.0
// Who takes part in a job, and where each worker sits in the two levels of bitmaps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wire/format.h"

namespace atp::protocol {

// A unit is what one bit of bitmap1 stands for: a rack of workers behind a switch of their own, or one worker under the
// server's switch (direct), which starts at hop 1 with a bit of its own.
struct Unit {
    std::vector<std::uint16_t> ranks;  // member m has bit m of bitmap0
    bool direct = false;
};

// Where one worker sits.
struct Place {
    std::uint8_t hop = 0;     // the level its gradients start at
    std::uint8_t unit = 0;    // bit of bitmap1
    std::uint8_t member = 0;  // bit of bitmap0
    std::uint32_t mask0 = 0;  // all members of the unit
    std::uint32_t mask1 = 0;  // all units of the job
};

// Immutable after construction; shared by reading.
class Membership {
  public:
    // Ranks must be 0..n-1, each in exactly one unit; at most 32 units of at most 32 members; a direct unit has one.
    [[nodiscard]] static std::optional<Membership> make(std::vector<Unit> units);
    // All workers under one switch: up to 32 of them.
    [[nodiscard]] static std::optional<Membership> star(unsigned workers);
    // Racks of equal size, each behind a switch of its own.
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
