// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "control/fact_round.h"
#include "protocol/variant.h"
#include "wire/control.h"

namespace atp::control {
inline namespace ATP_VARIANT {

// What a rank that fails leaves in the store, in this order.
struct Farewell {
    // 1. If the reason is new, `gave-up` gets the value.
    bool is_new = false;
    // 2. This rank's key of every round gets the value. Empty: it has done so.
    std::string value{};
    // 3. If the reason is new, missing keys of this round get the value, those of ranks below `ranks`.
    std::string round{};
    std::uint32_t ranks = 0;
    // 4. The rank says that it is informed. Then it waits until all ranks that came are informed, or longest_farewell.
    bool waits = false;
};

// Rank 0 waits so long: its process often serves the store, and ends when it has failed.
inline constexpr Duration longest_farewell = std::chrono::seconds(1);

// How a rank of a formation gives up, so that no other rank waits for its deadline. docs/spec/formation.md#giving-up is
// normative.
//
// Ownership: a value.
// Calling order: enter() for each round, and handle_*() for what the store holds. If the rank fails: give_up().
// Threads: none.
// Failure: handle_arrivals() fails if two processes have one rank. Then the errors of this one must not end the others.
class GivingUp {
  public:
    GivingUp(std::uint32_t rank, std::uint32_t world) : rank_(rank), widest_(world) {}

    // The round in which this rank leaves a value or waits.
    void enter(std::string_view round) { round_ = round; }
    // Processes that came to this round with this rank.
    [[nodiscard]] Result<void> handle_arrivals(std::int64_t processes);
    // The values that this rank waited for.
    void handle_round(const FactRound& round);
    // Another rank gave up.
    void handle_notice(const wire::GaveUp& notice);

    // `first`: the round of a rank that was in none. nullopt: the rank leaves nothing.
    [[nodiscard]] std::optional<Farewell> give_up(const Error& error, std::string_view first);

  private:
    std::uint32_t rank_;
    std::uint32_t widest_;       // most ranks that any rank expects, as far as this rank knows
    std::string round_{};        // in which this rank was last; empty: in none
    bool notified_ = false;      // this rank gave up, or knows that another rank did
    std::string notice_{};       // of that rank; empty: none, or passed on
    bool is_displaced_ = false;  // another process has this rank
};

}  // namespace ATP_VARIANT
}  // namespace atp::control
