// SPDX-License-Identifier: Apache-2.0
#include "check/model.h"

#include <algorithm>
#include <utility>

namespace atp::check {
namespace {

// The input that an action gives to a node, and the fault whose budget the action uses.
struct Strike {
    Input input;
    std::optional<Fault> fault;
};

Strike strike_of(Action::Kind kind) {
    switch (kind) {
        case Action::Kind::lose: return {Input::packet, Fault::loss};
        case Action::Kind::duplicate: return {Input::packet, Fault::duplicate};
        case Action::Kind::deliver_aged: return {Input::packet_aged, Fault::ageing};
        case Action::Kind::deliver_marked: return {Input::packet_marked, Fault::mark};
        case Action::Kind::timeout: return {Input::timeout, Fault::timeout};
        case Action::Kind::restart: return {Input::restart, Fault::restart};
        case Action::Kind::crash: return {Input::crash, Fault::crash};
        case Action::Kind::change: return {Input::change, Fault::change};
        case Action::Kind::deadline: return {Input::deadline, std::nullopt};
        case Action::Kind::tick: return {Input::timeout, Fault::timeout};
        default: return {Input::packet, std::nullopt};
    }
}

std::string_view verb_of(Action::Kind kind) {
    switch (kind) {
        case Action::Kind::deliver: return "deliver";
        case Action::Kind::lose: return "lose";
        case Action::Kind::duplicate: return "deliver, keep a copy";
        case Action::Kind::deliver_aged: return "deliver, the aggregator abandoned";
        case Action::Kind::deliver_marked: return "deliver, marked";
        case Action::Kind::timeout: return "timer fires";
        case Action::Kind::restart: return "restart";
        case Action::Kind::crash: return "crash";
        case Action::Kind::tick: return "50 ms pass";
        case Action::Kind::change: return "change of slices";
        default: return "deadline passes";
    }
}

constexpr std::uint32_t no_packet = no_number >> 3U;

// Key of (node state, input, packet). Requires fewer than 2^29 packets.
std::uint64_t key_of(std::uint32_t node_state, Input input, std::uint32_t packet) {
    return std::uint64_t{node_state} << 32U | std::uint64_t{packet} << 3U | static_cast<std::uint64_t>(input);
}

}  // namespace

Model::Model(const Configuration& configuration, std::unique_ptr<System> system)
    : configuration_(configuration),
      system_(std::move(system)),
      first_packet_(1 + system_->nodes()),
      states_(system_->nodes()),
      summaries_(system_->nodes()) {
    for (std::size_t i = 0; i < fault_count; ++i) full_budget_ |= std::uint32_t{configuration_.budget[i]} << (4U * i);
    start();
}

void Model::start() {
    initial_.push_back(full_budget_);
    Words packets;
    std::vector<Sent> earlier;
    system_->earlier_packets(earlier);
    for (const Sent& sent : earlier) packets.push_back(intern_packet(sent));
    for (unsigned node = 0; node < nodes(); ++node) {
        system_->start(node, step_);
        if (violation_.empty()) violation_ = step_.violation;
        initial_.push_back(remember(node, step_));
        for (const Sent& sent : step_.sent) packets.push_back(intern_packet(sent));
    }
    std::ranges::sort(packets);
    initial_.insert(initial_.end(), packets.begin(), packets.end());
}

std::uint32_t Model::remember(unsigned node, const Step& step) {
    const auto [number, fresh] = states_[node].pool.intern(step.state);
    if (fresh) states_[node].summaries.push_back(step.summary);
    return number;
}

std::uint32_t Model::intern_packet(const Sent& sent) {
    scratch_.assign(1, static_cast<std::byte>(sent.to));
    scratch_.insert(scratch_.end(), sent.bytes.begin(), sent.bytes.begin() + sent.size);
    const auto [number, fresh] = packets_.intern(scratch_);
    if (!fresh) return number;
    targets_.push_back(static_cast<std::uint8_t>(sent.to));
    commands_.push_back(system_->is_command(std::span(scratch_).subspan(1)));
    return number;
}

const Model::Transition& Model::transition(unsigned node, std::uint32_t node_state, Input input, std::uint32_t packet) {
    NodeStates& at = states_[node];
    const std::uint64_t key = key_of(node_state, input, packet);
    if (const std::uint32_t known = at.transitions.find(key); known != no_number) return transitions_[known];
    // `bytes` is valid until intern_packet() adds a packet to the pool. Machines write to a copy of the packet.
    const auto bytes = packet == no_packet ? std::span<const std::byte>{} : packets_[packet].subspan(1);
    system_->step(node, at.pool[node_state], input, bytes, step_);
    Transition made;
    made.next = remember(node, step_);
    made.first_sent = static_cast<std::uint32_t>(sent_.size());
    made.sent_count = static_cast<std::uint16_t>(step_.sent.size());
    for (const Sent& sent : step_.sent) sent_.push_back(intern_packet(sent));
    made.claims = step_.claims;
    const bool worker_sends = !step_.sent.empty() && system_->kind(node) == NodeKind::worker;
    made.concerns_others = worker_sends || step_.claims.superseded || step_.claims.claimed ||
                           step_.claims.became_ready || step_.claims.blames;
    if (!step_.violation.empty()) {
        made.violation = static_cast<std::uint32_t>(violations_.size());
        violations_.push_back(step_.violation);
    }
    at.transitions.insert(key, static_cast<std::uint32_t>(transitions_.size()));
    transitions_.push_back(made);
    return transitions_.back();
}

bool Model::differs_when(std::span<const std::uint32_t> state, std::uint32_t packet, Input input) {
    const unsigned node = target_of(packet);
    const Transition plain = transition(node, state[node + 1], Input::packet, packet);
    const Transition other = transition(node, state[node + 1], input, packet);
    return plain.next != other.next || plain.violation != other.violation ||
           !std::equal(sent_.begin() + plain.first_sent, sent_.begin() + plain.first_sent + plain.sent_count,
                       sent_.begin() + other.first_sent, sent_.begin() + other.first_sent + other.sent_count);
}

bool Model::apply(std::span<const std::uint32_t> state, Action action, Words& next) {
    const Strike strike = strike_of(action.kind);
    next.assign(state.begin(), state.end());
    if (action.kind == Action::Kind::tick) return tick(state, next);
    // A healed run lets timers fire even if the budget of timeouts is used up.
    if (strike.fault && left(state[0], *strike.fault) != 0) next[0] = spend(state[0], *strike.fault);
    unsigned node = action.at;
    std::uint32_t packet = no_packet;
    if (action.is_packet()) {
        packet = packets(state)[action.at];
        node = target_of(packet);
        if (action.kind != Action::Kind::duplicate) {
            next.erase(next.begin() + static_cast<std::ptrdiff_t>(first_packet_ + action.at));
        }
        if (action.kind == Action::Kind::lose) return true;
    }
    const Transition& taken = transition(node, state[node + 1], strike.input, packet);
    next[node + 1] = taken.next;
    put_in_flight(taken, next);
    return assess_system(node, taken, next);
}

void Model::put_in_flight(const Transition& taken, Words& next) const {
    for (std::uint32_t i = 0; i < taken.sent_count; ++i) {
        const std::uint32_t sent = sent_[taken.first_sent + i];
        const auto begin = next.begin() + static_cast<std::ptrdiff_t>(first_packet_);
        next.insert(std::upper_bound(begin, next.end(), sent), sent);
    }
}

bool Model::any_in_flight(std::span<const std::uint32_t> state) const {
    return std::ranges::any_of(packets(state), [&](std::uint32_t packet) { return !commands_[packet]; });
}

bool Model::may_tick(std::span<const std::uint32_t> state) const {
    return left(state[0], Fault::timeout) != 0 && may_outlast(state);
}

bool Model::tick(std::span<const std::uint32_t> state, Words& next) {
    if (left(state[0], Fault::timeout) != 0) next[0] = spend(next[0], Fault::timeout);
    if (left(state[0], Fault::ageing) != 0 && any_in_flight(state)) next[0] = spend(next[0], Fault::ageing);
    taken_.clear();
    for (unsigned node = 0; node < nodes(); ++node) {
        taken_.push_back(transition(node, state[node + 1], Input::timeout, no_packet));
        next[node + 1] = taken_.back().next;
        put_in_flight(taken_.back(), next);
    }
    for (unsigned node = 0; node < nodes(); ++node) {
        if (!assess_system(node, taken_[node], next)) return false;
    }
    return true;
}

// Checks the step of `node`, and the invariants that involve several nodes.
bool Model::assess_system(unsigned node, const Transition& taken, Words& next) {
    if (taken.violation != 0) {
        violation_ = violations_[taken.violation];
        return false;
    }
    if (!taken.concerns_others) return true;
    for (unsigned other = 0; other < nodes(); ++other) summaries_[other] = &summary(next, other);
    const SystemAssessment assessment = system_->assess(node, taken.claims, summaries_);
    if (assessment.late_claim) next[0] |= late_claim;
    violation_ = assessment.violation;
    return assessment.violation.empty();
}

bool Model::done(std::span<const std::uint32_t> state, unsigned node) const {
    return system_->kind(node) != NodeKind::worker || summary(state, node).done;
}

bool Model::settled(std::span<const std::uint32_t> state) {
    for (unsigned node = 0; node < nodes(); ++node) summaries_[node] = &summary(state, node);
    return system_->settled(summaries_);
}

bool Model::any_crashed(std::span<const std::uint32_t> state) const {
    for (unsigned node = 0; node < nodes(); ++node) {
        if (summary(state, node).crashed) return true;
    }
    return false;
}

// Without faults, when nothing is in flight any more:
// - All tensors have ended. Only fragments that collided may wait for a timer.
// - No switch holds an aggregator. After a fault or a timer, it may: a lost ACK does not release the aggregator, and a
//   late copy may claim one after another fragment has overwritten the tombstone. Such an aggregator occupies memory,
//   but changes no sum. Another check proves that ageing frees it.
bool Model::assess_quiet(std::span<const std::uint32_t> state) {
    if (has_clock() || state[0] != full_budget_) return true;
    if (!settled(state)) {
        if (!configuration_.has_own_aggregators()) return true;
        violation_ = "without any fault, an operation waits for a timer";
        return false;
    }
    if (configuration_.mismatched_worker >= 0) return true;  // no ACK frees the aggregators: they age out
    for (unsigned node = 0; node < nodes(); ++node) {
        if (summary(state, node).held == 0) continue;
        violation_ = "without any fault, a switch holds an aggregator although all tensors have ended";
        return false;
    }
    return true;
}

std::span<const std::byte> Model::packet_of(std::span<const std::uint32_t> state, Action action) const {
    return action.is_packet() ? packets_[packets(state)[action.at]] : std::span<const std::byte>{};
}

std::string Model::describe(std::span<const std::uint32_t> state, Action action) {
    std::string text{verb_of(action.kind)};
    if (action.kind == Action::Kind::tick) return text;
    text += action.kind == Action::Kind::lose ? " before " : action.is_packet() ? " to " : " at ";
    if (!action.is_packet()) return text + system_->name(action.at);
    const std::span<const std::byte> bytes = packet_of(state, action);
    return text + system_->name(std::to_integer<unsigned>(bytes.front())) + ": " + system_->describe(bytes.subspan(1));
}

std::size_t Model::node_states() const {
    std::size_t sum = 0;
    for (const NodeStates& states : states_) sum += states.pool.size();
    return sum;
}

}  // namespace atp::check
