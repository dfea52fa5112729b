// SPDX-License-Identifier: Apache-2.0
#include "check/healing.h"

#include <algorithm>

namespace atp::check {
namespace {

// Far more than any configuration needs: a fragment recovers after its workers' timers have fired a few times.
constexpr unsigned max_expiries = 24;
constexpr unsigned max_deliveries_an_expiry = 600;
// With a clock: 8 s. A rank may wait 3 s for members that could return, and the hold time before that.
constexpr unsigned max_ticks = 160;

}  // namespace

TraceStep trace_step(Model& model, std::span<const std::uint32_t> state, Action action) {
    const std::span<const std::byte> packet = model.packet_of(state, action);
    return {action.kind, action.at, {packet.begin(), packet.end()}, model.describe(state, action)};
}

std::string HealedRun::run(std::span<const std::uint32_t> state) {
    trace_ = nullptr;
    return go(state);
}

std::string HealedRun::run(std::span<const std::uint32_t> state, std::vector<TraceStep>& trace) {
    trace_ = &trace;
    return go(state);
}

std::string HealedRun::go(std::span<const std::uint32_t> state) {
    state_.assign(state.begin(), state.end());
    const auto packets = model_.packets(state_);
    queue_.assign(packets.begin(), packets.end());
    head_ = 0;
    const unsigned most = model_.has_clock() ? max_ticks : max_expiries;
    for (unsigned expiry = 0; expiry < most; ++expiry) {
        for (unsigned deliveries = 0; head_ < queue_.size(); ++deliveries) {
            if (deliveries == max_deliveries_an_expiry)
                return "without further faults, packets are exchanged without end";
            if (!deliver_oldest()) return model_.violation();
        }
        if (model_.settled(state_)) return {};
        const bool sound = model_.has_clock() ? act({Action::Kind::tick, 0}) : fire(Action::Kind::timeout);
        if (!sound) return model_.violation();
    }
    if (model_.has_clock()) return "without further faults, a rank waits without end";
    if (!model_.any_crashed(state_)) return "without further faults, the job never completes";
    if (!fire(Action::Kind::deadline)) return model_.violation();
    return model_.settled(state_) ? "" : "a worker hangs beyond its deadline";
}

bool HealedRun::deliver_oldest() {
    const std::uint32_t packet = queue_[head_++];
    const auto flying = model_.packets(state_);
    const auto at = std::ranges::lower_bound(flying, packet) - flying.begin();
    return act({Action::Kind::deliver, static_cast<std::uint16_t>(at)});
}

bool HealedRun::fire(Action::Kind kind) {
    for (unsigned node = 0; node < model_.nodes(); ++node) {
        const bool due = kind == Action::Kind::timeout ? model_.timer_armed(state_, node) : !model_.done(state_, node);
        if (due && !act({kind, static_cast<std::uint16_t>(node)})) return false;
    }
    return true;
}

// Executes an action. Packets that were not in flight before are appended to the queue.
bool HealedRun::act(Action action) {
    if (trace_ != nullptr) trace_->push_back(trace_step(model_, state_, action));
    const bool sound = model_.apply(state_, action, next_);
    const auto before = model_.packets(state_);
    stayed_.assign(before.begin(), before.end());
    if (action.is_packet()) stayed_.erase(stayed_.begin() + action.at);
    std::ranges::set_difference(model_.packets(next_), stayed_, std::back_inserter(queue_));
    state_.swap(next_);
    return sound;
}

}  // namespace atp::check
