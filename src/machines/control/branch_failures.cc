// SPDX-License-Identifier: Apache-2.0
#include "control/branch_failures.h"

#include <algorithm>

namespace atp::control {

// A unit joins as a whole or member by member, so each of the two replaces the other.
bool BranchFailures::concerns(Source known, Source source) {
    if (known == source) return true;
    if (known >= parent || source >= parent || known >> 8U != source >> 8U) return false;
    return (known & 0xFFU) == whole_unit || (source & 0xFFU) == whole_unit;
}

void BranchFailures::note(Source source, const wire::Edge& edge) {
    if (std::ranges::find(failures_, source, &Failure::source) == failures_.end()) failures_.push_back({source, edge});
}

void BranchFailures::replace(Source source, const std::optional<wire::Edge>& edge) {
    const auto known = std::ranges::find(failures_, source, &Failure::source);
    if (edge && known != failures_.end()) {
        known->edge = *edge;
        return;
    }
    std::erase_if(failures_, [&](const Failure& failure) { return concerns(failure.source, source); });
    if (edge) failures_.push_back({source, *edge});
}

std::optional<wire::Edge> BranchFailures::first() const {
    if (failures_.empty()) return std::nullopt;
    return failures_.front().edge;
}

std::optional<wire::Edge> BranchFailures::first_own() const {
    const auto own = std::ranges::find_if(failures_, [](const Failure& failure) { return failure.source != above; });
    if (own == failures_.end()) return std::nullopt;
    return own->edge;
}

bool BranchFailures::of_children() const {
    return std::ranges::any_of(failures_, [](const Failure& failure) { return failure.source < parent; });
}

}  // namespace atp::control
