// SPDX-License-Identifier: Apache-2.0
// What one exploration is about: who takes part, what they add up, and which faults may strike how often.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atp::check {

// Everything that is no delivery. How often each may still happen is part of a state.
enum class Fault : std::uint8_t {
    loss,       // a packet vanishes
    duplicate,  // a packet arrives, and stays in flight
    timeout,    // a worker's timer fires
    ageing,     // a packet reaches a switch when the aggregator it names counts as abandoned
    restart,    // a switch forgets every aggregator
    mark,       // a packet arrives with congestion marked
    crash,      // a worker stops for good
};
inline constexpr std::size_t fault_count = 7;
using FaultBudget = std::array<std::uint8_t, fault_count>;  // by Fault, each at most 15

// The numbers that workers add up.
enum class Values : std::uint8_t {
    small,                     // small integers, all subsets with different sums
    too_large,                 // of fragment 0, the second worker's does not fit an integer
    not_finite,                // of fragment 0 one is infinite, of fragment 1 one is NaN
    saturating,                // of fragment 0 the first two sum to 2^32 or so, and a third is negative
    saturating_and_too_large,  // both at once: 32 bits are left in the switch, and the last worker's does not fit
};

enum class Protocol : std::uint8_t { atp, switchml };

// A rack has a switch of its own unless they share one; a direct worker is under the server's switch.
struct UnitLayout {
    std::uint8_t workers = 2;
    bool direct = false;
};

struct Configuration {
    std::string_view name;
    std::string_view what;
    Protocol protocol = Protocol::atp;
    std::vector<UnitLayout> units;  // of SwitchML: one, with all workers
    std::uint8_t jobs = 1;
    std::uint8_t window_log2 = 0;
    std::vector<std::uint8_t> tensors;  // fragments of each
    std::uint32_t aggregators = 1;
    FaultBudget budget{};
    Values values = Values::small;
    std::uint8_t plain_tensors = 0;  // as bits, by number: those whose integers are the numbers themselves
    std::uint32_t first_seq = 1000;
    bool racks_share_switch = false;
    bool earlier_incarnation = false;  // packets of another token are in flight from the beginning
    bool stale_packets = false;        // so are packets of the fragment before the first
    int mismatched_worker = -1;        // the rank that means another operation
    int marked_worker = -1;            // the rank whose gradients are all marked on their way

    [[nodiscard]] unsigned fragments() const;
    [[nodiscard]] unsigned workers() const;  // of a job
    [[nodiscard]] std::uint32_t window() const { return 1U << window_log2; }
    [[nodiscard]] std::uint8_t budget_of(Fault fault) const { return budget[static_cast<std::size_t>(fault)]; }
};

inline constexpr unsigned max_window = 4;
inline constexpr unsigned max_fragments = 8;
inline constexpr unsigned max_workers = 4;  // of a job

struct Budget {  // for designated initialisers
    std::uint8_t losses = 0, duplicates = 0, timeouts = 0, ageings = 0, restarts = 0, marks = 0, crashes = 0;

    // NOLINTNEXTLINE(google-explicit-constructor): this is what it is for
    constexpr operator FaultBudget() const { return {losses, duplicates, timeouts, ageings, restarts, marks, crashes}; }
};

// The same configurations with two sets of budgets: what a few minutes can visit, and what a test can.
enum class Extent : std::uint8_t { full, quick };
[[nodiscard]] std::span<const Configuration> configurations(Extent extent);
// nullptr when there is none of that name.
[[nodiscard]] const Configuration* find_configuration(std::string_view name, Extent extent);

}  // namespace atp::check
