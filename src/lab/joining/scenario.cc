// SPDX-License-Identifier: Apache-2.0
#include "joining/scenario.h"

#include <fmt/format.h>

#include <array>

#include "random/random.h"

namespace atp::joining {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t cluster_stream = 0x6a01;
constexpr std::uint64_t fault_stream = 0x6a02;

constexpr std::array<std::string_view, fault_kinds> names{
    "none",          "rank killed",   "rank lost",   "rank paused",   "rank leaves", "rank cut",    "rank cut up",
    "rank cut down", "switch killed", "switch lost", "switch paused", "leaf cut",    "leaf cut up", "leaf cut down"};

bool is_of_leaf(Fault fault) { return fault >= Fault::leaf_cut; }
bool is_of_switch(Fault fault) { return fault >= Fault::switch_killed && !is_of_leaf(fault); }

Duration milliseconds_between(Random& random, std::uint64_t first, std::uint64_t last) {
    return milliseconds(random.between(first, last));
}

}  // namespace

std::string_view name_of(Fault fault) { return names[static_cast<std::size_t>(fault)]; }

JoinScenario draw_calm_scenario(std::uint64_t seed) {
    Random random(seed, cluster_stream);
    JoinScenario s;
    s.seed = seed;
    s.leaves = static_cast<std::uint8_t>(random.chance(0.4) ? 0 : random.between(2, 3));
    s.ranks = static_cast<std::uint8_t>(s.leaves == 0 ? random.between(1, 4) : random.between(1, 2));
    s.jobs = static_cast<std::uint8_t>(random.chance(0.7) ? 1 : random.between(2, 3));
    if (random.chance(0.5)) s.loss = random.pick(std::array{0.001, 0.01, 0.03});
    if (random.chance(0.5)) s.duplicates = random.pick(std::array{0.01, 0.1, 0.5});
    s.longest_delay =
        random.pick(std::array<Duration, 4>{milliseconds(1), milliseconds(5), milliseconds(20), milliseconds(60)});
    s.starts_within = milliseconds_between(random, 0, 2000);
    s.limits_reports = random.chance(0.3);
    return s;
}

JoinScenario draw_join_scenario(std::uint64_t seed) {
    JoinScenario s = draw_calm_scenario(seed);
    Random random(seed, fault_stream);
    s.fault = static_cast<Fault>(random.below(fault_kinds));
    while (is_of_leaf(s.fault) && s.leaves == 0) s.fault = static_cast<Fault>(random.below(fault_kinds));
    s.victim = static_cast<std::uint8_t>(is_of_leaf(s.fault)     ? random.below(s.leaves)
                                         : is_of_switch(s.fault) ? random.below(s.switches())
                                                                 : random.below(s.ranks_of_job()));
    s.fails_at = Time{} + std::chrono::seconds(1) + milliseconds_between(random, 0, 6000);
    const bool pauses = s.fault == Fault::rank_paused || s.fault == Fault::switch_paused;
    if (s.fault != Fault::rank_leaves && (pauses || random.chance(0.6))) {
        s.lasts =
            random.chance(0.5) ? milliseconds_between(random, 10, 1500) : milliseconds_between(random, 1500, 8000);
    }
    return s;
}

std::string text_of(const JoinScenario& s) {
    const std::string topology = s.leaves == 0 ? fmt::format("{} ranks below one switch", s.ranks)
                                               : fmt::format("{} leaves of {} ranks below a root", s.leaves, s.ranks);
    std::string text = fmt::format("{} jobs of {}, loss {} %, duplicates {} %, delay up to {} ms", s.jobs, topology,
                                   100 * s.loss, 100 * s.duplicates, s.longest_delay / milliseconds(1));
    if (s.fault == Fault::none) return text + ", no fault";
    text +=
        fmt::format(", {} {} at {} ms", name_of(s.fault), s.victim, s.fails_at.time_since_epoch() / milliseconds(1));
    if (s.lasts != Duration::max()) text += fmt::format(" for {} ms", s.lasts / milliseconds(1));
    return text;
}

}  // namespace atp::joining
