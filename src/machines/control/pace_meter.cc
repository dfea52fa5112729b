// SPDX-License-Identifier: Apache-2.0
#include "control/pace_meter.h"

#include <algorithm>
#include <bit>

#include "control/timing.h"

namespace atp::control {
namespace {

constexpr std::uint8_t most_of_the_waiting_percent = 75;
constexpr std::uint16_t notable_permille = 250;

}  // namespace

bool is_slow(const wire::Pace& pace) {
    return pace.share_percent >= most_of_the_waiting_percent && pace.waited_permille >= notable_permille;
}

bool names_same(const wire::Pace& a, const wire::Pace& b) {
    return a.unit == b.unit && a.member == b.member && a.whole_unit == b.whole_unit;
}

void PaceMeter::handle_completed(std::uint32_t completed_by, Duration alone, Time now) {
    if (begun_ == Time{}) begun_ = now;
    const Duration waited = std::min(alone, now - completed_at_);
    completed_at_ = now;
    if (!std::has_single_bit(completed_by)) return;
    Count& count = counts_[static_cast<unsigned>(std::countr_zero(completed_by))];
    ++count.fragments;
    if (alone >= timing.notable_lateness) count.waited += std::max(waited, Duration::zero());
}

void PaceMeter::handle_time(Time now, Duration interval) {
    if (last_ && now - assessed_at_ >= interval) last_.reset();
    if (begun_ == Time{} || now - begun_ < interval) return;
    last_ = assess(now - begun_);
    assessed_at_ = now;
    counts_ = {};
    begun_ = Time{};
}

std::optional<LongestWait> PaceMeter::assess(Duration interval) const {
    Count all;
    for (const Count& count : counts_) {
        all.fragments += count.fragments;
        all.waited += count.waited;
    }
    if (all.fragments < least_fragments || all.waited == Duration::zero()) return std::nullopt;
    const auto most = std::ranges::max_element(counts_, {}, &Count::waited);
    constexpr auto percent = static_cast<std::int64_t>(wire::whole_percent);
    constexpr auto permille = static_cast<std::int64_t>(wire::whole_permille);
    return LongestWait{
        .child = static_cast<std::uint8_t>(most - counts_.begin()),
        .share_percent = static_cast<std::uint8_t>(percent * most->waited / all.waited),
        .last_percent = static_cast<std::uint8_t>(percent * most->fragments / all.fragments),
        .waited_permille = static_cast<std::uint16_t>(std::min(permille * most->waited / interval, permille))};
}

}  // namespace atp::control
