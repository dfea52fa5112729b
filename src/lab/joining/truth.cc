// SPDX-License-Identifier: Apache-2.0
#include "joining/truth.h"

#include <fmt/format.h>

#include "control/timing.h"

namespace atp::joining {
namespace {

using control::timing;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint16_t switch_port = 4790;
constexpr unsigned first_rank_port = 5000;
// A fault this short ends before any process can take it for a failure.
constexpr Duration too_short_to_see = milliseconds(250);
// The error comes within the hold time and this: the last JOIN before the fault, a question, and the way to all ranks.
constexpr Duration after_hold = seconds(2);
// Within which everything that is alive is ready again: the remains of the old incarnation expire, and members join.
constexpr Duration recovers_within = seconds(14);

}  // namespace

wire::Address address_of_switch(unsigned number) {
    return *wire::Address::parse(fmt::format("10.0.0.{}:{}", number + 1, switch_port));
}

wire::Address address_of_rank(unsigned job, unsigned rank, unsigned incarnation) {
    constexpr unsigned hosts_of_net = 250;
    return *wire::Address::parse(fmt::format("10.{}.{}.{}:{}", job + 1, rank / hosts_of_net, rank % hosts_of_net + 1,
                                             first_rank_port + incarnation));
}

bool Truth::is_culprit(const Error& error) const {
    const std::string& peer = error.peer;
    const std::string of_victim = to_string(address_of_switch(scenario_.victim));
    const std::string of_root = to_string(address_of_switch(scenario_.root()));
    switch (scenario_.fault) {
        case Fault::none: return false;
        case Fault::rank_killed:
        case Fault::rank_lost: return peer == fmt::format("rank {}", scenario_.victim);
        // The switch of a rack leaves with its last rank.
        case Fault::rank_leaves:
            return peer == fmt::format("rank {}", scenario_.victim) ||
                   (scenario_.leaves != 0 && scenario_.ranks == 1 &&
                    peer == to_string(address_of_switch(scenario_.switch_of(scenario_.victim))));
        // The rank itself names its switch, if it learns nothing from the switch.
        case Fault::rank_paused:
        case Fault::rank_cut:
        case Fault::rank_cut_up:
        case Fault::rank_cut_down:
            return peer == fmt::format("rank {}", scenario_.victim) ||
                   peer == to_string(address_of_switch(scenario_.switch_of(scenario_.victim)));
        case Fault::switch_killed:
        case Fault::switch_lost:
        // A leaf passes on that the root refuses.
        case Fault::switch_paused:
            return peer == of_victim || error.text.find("sent by " + of_victim) != std::string::npos;
        case Fault::leaf_cut:
        case Fault::leaf_cut_up:
        case Fault::leaf_cut_down: return peer == of_victim || peer == of_root;
    }
    return false;
}

std::optional<std::string> Truth::objection_to(unsigned job, const Error& error, Time failed_at) const {
    if (scenario_.fault == Fault::none) return "there is no fault";
    if (failed_at < scenario_.fails_at) return "the fault comes later";
    if (is_of_rank() && job != 0) return "the fault is that of another job";
    if (is_harmless()) return "the fault is too short";
    if (!is_culprit(error)) return "it is not at fault";
    return std::nullopt;
}

bool Truth::blocks(unsigned job) const {
    if (scenario_.fault == Fault::none) return false;
    if (!is_of_rank()) return true;
    const bool is_cut = scenario_.fault >= Fault::rank_cut && scenario_.fault <= Fault::rank_cut_down;
    return job == 0 && (is_cut || scenario_.ranks_of_job() > 1);
}

Time Truth::fails_by() const { return scenario_.fails_at + timing.hold + after_hold; }

bool Truth::is_harmless() const {
    if (scenario_.fault == Fault::none) return true;
    const bool loses_state = scenario_.fault == Fault::switch_killed || scenario_.fault == Fault::switch_lost ||
                             scenario_.fault == Fault::rank_killed || scenario_.fault == Fault::rank_lost;
    return !loses_state && scenario_.lasts < too_short_to_see;
}

Time Truth::ends_at() const {
    if (scenario_.fault == Fault::none) return Time{} + scenario_.starts_within + seconds(8);
    return heals() ? heals_at() + recovers_within : fails_by() + seconds(3);
}

}  // namespace atp::joining
