// SPDX-License-Identifier: Apache-2.0
#include "check/formation_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "check/state_archive.h"
#include "control/job_plan.h"

namespace atp::check::ATP_VARIANT {

namespace {

constexpr std::uint32_t job_of_rank_0 = 100;

// Ranks of one host each, below one switch.
wire::RankFacts facts_of(unsigned rank, bool differs) {
    return {.job = job_of_rank_0 + rank,
            .token = rank + 1,
            .kernel = std::to_string(rank),
            .terms = fmt::format("lanes=0 window={}", differs ? 32 : 16)};
}

wire::NetworkFacts network_of(unsigned rank) {
    return {.path = {{.id = 7, .aggregators = 1000 + rank, .lanes = 352}}, .lanes = 360 - rank};
}

template <class Archive>
void persist_text(Archive& archive, std::string& text) {
    auto size = static_cast<std::uint32_t>(text.size());
    archive.value(size);
    text.resize(size);
    archive.bytes(std::as_writable_bytes(std::span(text)));
}

}  // namespace

FormationMachines::FormationMachines(const Configuration& configuration)
    : configuration_(configuration), ranks_(configuration.workers()), states_(ranks_) {
    assert(ranks_ <= max_workers);
}

unsigned FormationMachines::world_of(unsigned rank) const {
    const bool differs = configuration_.differs_in_world && static_cast<int>(rank) == configuration_.mismatched_worker;
    return ranks_ + (differs ? 1 : 0);
}

std::vector<std::uint32_t> FormationMachines::all_ranks(unsigned rank) const {
    std::vector<std::uint32_t> all(world_of(rank));
    std::iota(all.begin(), all.end(), 0U);
    return all;
}

std::string FormationMachines::value_of(unsigned round, unsigned rank, const Key& key) const {
    if (key.state == Key::State::notice) return states_[key.by].notice;
    const bool differs = !configuration_.differs_in_world && static_cast<int>(rank) == configuration_.mismatched_worker;
    return control::stamped(world_of(rank), round == 0 ? control::message_text(facts_of(rank, differs))
                                                       : control::message_text(network_of(rank)));
}

control::FactRound FormationMachines::round_of(unsigned rank) const {
    const unsigned number = states_[rank].phase == Phase::facts ? 0 : 1;
    control::FactRound round(world_of(rank), all_ranks(rank));
    for (const Taken& taken : states_[rank].taken) round.take(taken.rank, value_of(number, taken.rank, taken.key));
    return round;
}

// --------------------------------------------------------------------------------------------------------------- Steps

void FormationMachines::start(unsigned /*node*/, Step& step) {
    step.reset();
    for (unsigned rank = 0; rank < ranks_; ++rank) {
        send(Turn::begin, rank, 0, 0, step);
        if (configuration_.killed >= 0) send(Turn::end, rank, 0, 0, step);
    }
    StateWriter writer(step.state, model_now);
    persist(writer);
}

void FormationMachines::earlier_packets(std::vector<Sent>& sent) {
    if (configuration_.killed < 0) return;
    Sent kill{.to = 0, .size = 4};
    kill.bytes[0] = static_cast<std::byte>(Turn::kill);
    kill.bytes[1] = static_cast<std::byte>(configuration_.killed);
    sent.push_back(kill);
}

void FormationMachines::send(Turn turn, unsigned rank, unsigned round, unsigned from, Step& step) const {
    Sent sent{.to = 0, .size = 4};
    sent.bytes[0] = static_cast<std::byte>(turn);
    sent.bytes[1] = static_cast<std::byte>(rank);
    sent.bytes[2] = static_cast<std::byte>(round);
    sent.bytes[3] = static_cast<std::byte>(from);
    step.sent.push_back(sent);
}

void FormationMachines::step(unsigned /*node*/, std::span<const std::byte> before, Input input,
                             std::span<const std::byte> packet, Step& step) {
    step.reset();
    StateReader reader(before);
    persist(reader);
    assert(reader.at_end() && input == Input::packet);
    const auto rank = std::to_integer<unsigned>(packet[1]);
    switch (static_cast<Turn>(packet[0])) {
        case Turn::begin: begin(rank, step); break;
        case Turn::read:
            read(rank, std::to_integer<unsigned>(packet[2]), std::to_integer<unsigned>(packet[3]), step);
            break;
        case Turn::end: end_time(rank, step); break;
        case Turn::kill:
            if (states_[rank].phase < Phase::formed) states_[rank] = {.phase = Phase::killed};
            break;
    }
    StateWriter writer(step.state, time_of(input));
    persist(writer);
    step.summary = {};
    step.summary.done = std::ranges::all_of(states_, [](const Rank& each) { return each.phase >= Phase::formed; });
}

// Ranks that wait for this key may read it.
void FormationMachines::set(unsigned round, unsigned rank, Key key, Step& step) {
    const bool is_new = store_[round][rank].state == Key::State::absent;
    store_[round][rank] = key;
    if (!is_new) return;
    const Phase phase = round == 0 ? Phase::facts : Phase::network;
    for (unsigned other = 0; other < ranks_; ++other) {
        if (states_[other].phase == phase && rank < world_of(other)) send(Turn::read, other, round, rank, step);
    }
}

void FormationMachines::enter(unsigned rank, Phase phase, Step& step) {
    const unsigned round = phase == Phase::facts ? 0 : 1;
    states_[rank].phase = phase;
    states_[rank].taken.clear();
    for (unsigned other = 0; other < world_of(rank); ++other) {
        if (store_[round][other].state != Key::State::absent) send(Turn::read, rank, round, other, step);
    }
    // The own key of a rank has a notice if another one set what it missed: the value replaces it.
    set(round, rank, {.state = Key::State::value}, step);
}

void FormationMachines::begin(unsigned rank, Step& step) {
    if (states_[rank].phase == Phase::waits) enter(rank, Phase::facts, step);
}

void FormationMachines::read(unsigned rank, unsigned round, unsigned from, Step& step) {
    Rank& own = states_[rank];
    if (own.phase != (round == 0 ? Phase::facts : Phase::network)) return;
    own.taken.push_back({.rank = static_cast<std::uint8_t>(from), .key = store_[round][from]});
    const control::FactRound all = round_of(rank);
    if (!all.complete()) return;
    const auto values = all.values();
    if (!values) return fail(rank, values.error(), step);
    if (round == 0) {
        const auto facts = control::agreed_facts(*values, rank);
        if (!facts) return fail(rank, facts.error(), step);
        if (facts->front().job != job_of_rank_0) step.violate("a rank takes the job of another rank than rank 0");
        return enter(rank, Phase::network, step);
    }
    const auto facts = control::messages_of(*values, all_ranks(rank), wire::decode<wire::NetworkFacts>);
    if (!facts) return fail(rank, facts.error(), step);
    plan(rank, *facts, step);
}

void FormationMachines::plan(unsigned rank, const std::vector<wire::NetworkFacts>& facts, Step& step) {
    if (configuration_.mismatched_worker >= 0) step.violate("a rank formed although ranks disagree");
    for (const auto& round : store_) {
        const auto left = std::ranges::count(std::span(round).first(ranks_), Key::State::absent, &Key::state);
        if (left != 0) step.violate("a rank formed although another one has not come");
    }
    const auto planner = control::JobPlanner::make({}, {.job = job_of_rank_0, .token = 1}, all_ranks(rank), facts);
    if (!planner) return fail(rank, planner.error(), step);
    std::string plan = control::message_text(planner->plan());
    if (plan_.empty()) plan_ = plan;
    if (plan != plan_) step.violate("two ranks have different plans");
    states_[rank] = {.phase = Phase::formed};
}

// As store::Rendezvous: the error lists ranks that did not come.
void FormationMachines::end_time(unsigned rank, Step& step) {
    Rank& own = states_[rank];
    if (own.phase == Phase::waits) return send(Turn::end, rank, 0, 0, step);
    if (own.phase != Phase::facts && own.phase != Phase::network) return;
    const unsigned round = own.phase == Phase::facts ? 0 : 1;
    std::string text = "did not come:";
    for (const std::uint32_t missing : round_of(rank).missing()) {
        const bool came = store_[round][missing].state != Key::State::absent;
        if (!came) text += fmt::format(" {}", missing);
        const Phase phase = missing < ranks_ ? states_[missing].phase : Phase::waits;
        const bool is_behind = phase == Phase::waits || phase == Phase::facts || phase == Phase::killed;
        if (!came && !is_behind) step.violate("an error names a rank that came");
    }
    fail(rank, {.operation = Operation::rendezvous, .reason = Reason::timed_out, .text = text}, step);
}

void FormationMachines::fail(unsigned rank, const Error& error, Step& step) {
    const bool differs = configuration_.mismatched_worker >= 0;
    if (!differs && configuration_.killed < 0) step.violate("a rank failed although all agree and came");
    const std::string culprit = fmt::format("rank {} ", configuration_.mismatched_worker);
    if (differs && !error.text.starts_with(culprit)) step.violate("an error does not name the rank that differs");
    Rank& own = states_[rank];
    const unsigned last = own.phase == Phase::facts ? 0 : 1;
    control::GivingUp giving_up(rank, world_of(rank));
    if (const control::FactRound round = round_of(rank); round.complete()) giving_up.handle_round(round);
    const auto farewell = giving_up.give_up(error, {});
    own = {.phase = Phase::failed, .taken = {}, .notice = farewell->value};
    const Key key{.state = Key::State::notice, .by = static_cast<std::uint8_t>(rank)};
    for (unsigned round = 0; round < rounds; ++round) set(round, rank, key, step);
    if (!farewell->is_new) return;
    for (unsigned other = 0; other < std::min(farewell->ranks, most_keys); ++other) {
        if (store_[last][other].state == Key::State::absent) set(last, other, key, step);
    }
}

// -------------------------------------------------------------------------------------------------------------- States

template <class Archive>
void FormationMachines::persist(Archive& archive) {
    for (Rank& rank : states_) {
        archive.value(rank.phase);
        auto taken = static_cast<std::uint8_t>(rank.taken.size());
        archive.value(taken);
        rank.taken.resize(taken);
        for (Taken& each : rank.taken)
            archive.value(each.rank), archive.value(each.key.state), archive.value(each.key.by);
        persist_text(archive, rank.notice);
    }
    for (auto& round : store_) {
        for (Key& key : round) archive.value(key.state), archive.value(key.by);
    }
    persist_text(archive, plan_);
}

std::string FormationMachines::describe(std::span<const std::byte> packet) const {
    const auto rank = std::to_integer<unsigned>(packet[1]);
    switch (static_cast<Turn>(packet[0])) {
        case Turn::begin: return fmt::format("rank {} begins", rank);
        case Turn::end: return fmt::format("the time of rank {} is over", rank);
        case Turn::kill: return fmt::format("the end of rank {}", rank);
        case Turn::read: break;
    }
    return fmt::format("rank {} reads {} of rank {}", rank,
                       std::to_integer<unsigned>(packet[2]) == 0 ? "FACTS" : "NETWORK",
                       std::to_integer<unsigned>(packet[3]));
}

}  // namespace atp::check::ATP_VARIANT
