// SPDX-License-Identifier: Apache-2.0
#include "check/explorer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace atp::check {
namespace {

// The explorer starts a healed run from each state without packets in flight, and from one in 64 of the other states.
constexpr std::uint64_t sampled_mask = 63;
constexpr std::uint64_t progress_mask = (1U << 17U) - 1;

}  // namespace

Explorer::Explorer(const Configuration& configuration, std::unique_ptr<System> system, const Limits& limits)
    : limits_(limits), model_(configuration, std::move(system)), healed_(model_) {
    report_.configuration = configuration.name;
}

Report Explorer::run() {
    const auto began = std::chrono::steady_clock::now();
    std::uint32_t number = 0;
    const std::string wrong = model_.violation();
    bool sound = add(model_.initial(), no_number, {}, number);
    if (sound && !wrong.empty()) {
        fail(number, wrong);
        sound = false;
    }
    while (sound && next_layer_.count != 0) {
        std::swap(layer_, next_layer_);
        next_layer_.words.clear();
        next_layer_.first = layer_.first + layer_.count;
        next_layer_.count = 0;
        const std::uint32_t* at = layer_.words.data();
        for (std::uint32_t i = 0; sound && !full_ && i < layer_.count; ++i) {
            const std::span<const std::uint32_t> state(at + 1, *at);
            sound = expand(state, layer_.first + i);
            at += 1 + *at;
        }
        if (next_layer_.count != 0) ++report_.depth;
        if (full_) break;
    }
    report_.exhausted = sound && !full_;
    report_.states = parents_.size();
    if (sound) assess_calm_paths();
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return std::move(report_);
}

// Stores a new state and checks it. False if it violates an invariant.
bool Explorer::add(std::span<const std::uint32_t> state, std::uint32_t parent, Action action, std::uint32_t& number) {
    const std::uint64_t fingerprint = hash_words(state);
    const auto fresh = static_cast<std::uint32_t>(parents_.size());
    number = visited_.insert(fingerprint, fresh);
    if (number != fresh) return true;
    parents_.push_back(parent);
    actions_.push_back(action.code());
    calm_next_.push_back(no_number);
    next_layer_.words.push_back(static_cast<std::uint32_t>(state.size()));
    next_layer_.words.insert(next_layer_.words.end(), state.begin(), state.end());
    ++next_layer_.count;
    full_ = parents_.size() >= limits_.max_states;
    if ((fresh & progress_mask) == progress_mask) show_progress(next_layer_.count);
    return assess(state, fingerprint, fresh);
}

bool Explorer::assess(std::span<const std::uint32_t> state, std::uint64_t fingerprint, std::uint32_t number) {
    const bool quiet = model_.quiet(state);
    if (quiet) calm_next_[number] = number;
    if (quiet && !model_.assess_quiet(state)) {
        fail(number, model_.violation());
        return false;
    }
    if (!quiet && (fingerprint & sampled_mask) != 0) return true;
    ++report_.healed_runs;
    if (healed_.run(state).empty()) return true;
    fail_healing(number);
    return false;
}

bool Explorer::expand(std::span<const std::uint32_t> state, std::uint32_t number) {
    bool sound = true;
    model_.for_each_action(state, [&](Action action) {
        if (!sound) return;
        ++report_.transitions;
        if (!model_.apply(state, action, next_)) {
            fail_at(number, action, model_.violation());
            sound = false;
            return;
        }
        std::uint32_t next = 0;
        sound = add(next_, number, action, next);
        const bool is_calm = action.kind == Action::Kind::deliver || action.kind == Action::Kind::tick;
        if (is_calm && calm_next_[number] == no_number) calm_next_[number] = next;
    });
    return sound;
}

// Follows deliveries from every state to a state with nothing in flight. If deliveries form a cycle, a healed run
// decides: it delivers packets first in first out, so no packet waits for ever.
bool Explorer::assess_calm_paths() {
    constexpr std::uint8_t unknown = 0;
    constexpr std::uint8_t on_path = 1;
    constexpr std::uint8_t ends = 2;
    std::vector<std::uint8_t> colour(parents_.size(), unknown);
    std::vector<std::uint32_t> path;
    for (std::uint32_t start = 0; start < colour.size(); ++start) {
        std::uint32_t at = start;
        path.clear();
        while (colour[at] == unknown) {
            colour[at] = on_path;
            path.push_back(at);
            const std::uint32_t next = calm_next_[at];
            if (next == at || next == no_number) break;  // quiet, or beyond the limit of states
            at = next;
        }
        const bool circle = colour[at] == on_path && calm_next_[at] != at && calm_next_[at] != no_number;
        if (circle) {
            std::vector<TraceStep> trace;
            ++report_.healed_runs;
            if (!healed_.run(trace_to(at, trace)).empty()) {
                fail_healing(at);
                return false;
            }
        }
        for (const std::uint32_t state : path) colour[state] = ends;
    }
    return true;
}

void Explorer::fail(std::uint32_t state, const std::string& what) {
    Violation violation{.what = what, .trace = {}, .healed_from = 0};
    trace_to(state, violation.trace);
    violation.healed_from = violation.trace.size();
    report_.violation = std::move(violation);
}

void Explorer::fail_at(std::uint32_t parent, Action action, const std::string& what) {
    Violation violation{.what = what, .trace = {}, .healed_from = 0};
    const Words state = trace_to(parent, violation.trace);
    violation.trace.push_back(trace_step(model_, state, action));
    violation.healed_from = violation.trace.size();
    report_.violation = std::move(violation);
}

void Explorer::fail_healing(std::uint32_t number) {
    Violation violation;
    const Words state = trace_to(number, violation.trace);
    violation.healed_from = violation.trace.size();
    violation.what = healed_.run(state, violation.trace);
    report_.violation = std::move(violation);
}

// Repeats the path from the initial state to `state`, records each step, and returns the state.
Words Explorer::trace_to(std::uint32_t state, std::vector<TraceStep>& trace) {
    std::vector<Action> actions;
    for (; parents_[state] != no_number; state = parents_[state]) actions.push_back(Action::of(actions_[state]));
    std::ranges::reverse(actions);
    Words at = model_.initial();
    Words next;
    for (const Action& action : actions) {
        trace.push_back(trace_step(model_, at, action));
        if (!model_.apply(at, action, next)) break;
        at.swap(next);
    }
    return at;
}

void Explorer::show_progress(std::uint64_t frontier) {
    if (limits_.progress) limits_.progress({parents_.size(), report_.depth, frontier});
}

namespace {

// The action that the step describes. Packets are compared by their bytes, because their numbers differ between runs.
std::optional<Action> find_action(const Model& model, std::span<const std::uint32_t> state, const TraceStep& step) {
    Action action{step.kind, step.node};
    if (!action.is_packet()) return action;
    for (std::size_t i = 0; i < model.packets(state).size(); ++i) {
        action.at = static_cast<std::uint16_t>(i);
        if (std::ranges::equal(model.packet_of(state, action), step.packet)) return action;
    }
    return std::nullopt;
}

}  // namespace

std::string replay(Model& model, const std::vector<TraceStep>& trace) {
    Words at = model.initial();
    Words next;
    if (!model.violation().empty()) return model.violation();
    for (const TraceStep& step : trace) {
        const std::optional<Action> action = find_action(model, at, step);
        if (!action || (action->kind == Action::Kind::tick && !model.may_outlast(at))) return "cannot follow";
        if (!model.apply(at, *action, next)) return model.violation();
        at.swap(next);
    }
    if (model.quiet(at) && !model.assess_quiet(at)) return model.violation();
    return HealedRun(model).run(at);
}

}  // namespace atp::check
