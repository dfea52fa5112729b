// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace atp::joining {

// What fails, once. The jobs run before and, if the fault ends, after it.
enum class Fault : std::uint8_t {
    none,
    rank_killed,    // its process ends: its host reports that no process has the port
    rank_lost,      // its host is silent from then on
    rank_paused,    // its process does not run for `lasts`
    rank_leaves,    // in order, while the others go on
    rank_cut,       // no packet passes between a rank and its switch
    rank_cut_up,    // only from the rank to the switch, or
    rank_cut_down,  // only from the switch to the rank
    switch_killed,  // and it starts again, empty, if the fault ends
    switch_lost,    // likewise, but its host is silent meanwhile
    switch_paused,  // its process does not run for `lasts`
    leaf_cut,       // no packet passes between a leaf and the root
    leaf_cut_up,    // only from the leaf to the root, or
    leaf_cut_down,  // only from the root to the leaf
};
inline constexpr std::uint8_t fault_kinds = 14;
[[nodiscard]] std::string_view name_of(Fault fault);

// A cluster, its jobs and one fault.
struct JoinScenario {
    std::uint64_t seed = 1;
    std::uint8_t leaves = 0;   // below a root; 0: one switch
    std::uint8_t ranks = 2;    // of each leaf, in each job
    std::uint8_t jobs = 1;     // that form at once
    double loss = 0;           // probability, for each packet
    double duplicates = 0;     // likewise
    Duration longest_delay{};  // a packet takes up to so long, so packets overtake each other
    Duration starts_within{};  // the processes of a job start within this time
    Fault fault = Fault::none;
    std::uint8_t victim = 0;           // rank of job 0, or number of the switch: leaves from 0, then the root
    Time fails_at{};                   // a random moment, also while the jobs form
    Duration lasts = Duration::max();  // max: for good
    bool limits_reports = false;       // hosts send at most one report each second

    // At most 32 leaves of 32 ranks.
    [[nodiscard]] unsigned ranks_of_job() const { return leaves == 0 ? ranks : unsigned{leaves} * ranks; }
    [[nodiscard]] unsigned switches() const { return leaves + 1U; }
    [[nodiscard]] unsigned root() const { return leaves; }
    // Of a rank: the leaf, or the only switch.
    [[nodiscard]] unsigned switch_of(unsigned rank) const { return leaves == 0 ? 0 : rank / ranks; }
};

[[nodiscard]] JoinScenario draw_join_scenario(std::uint64_t seed);
// The same without a fault.
[[nodiscard]] JoinScenario draw_calm_scenario(std::uint64_t seed);
// One line for people.
[[nodiscard]] std::string text_of(const JoinScenario& scenario);

}  // namespace atp::joining
