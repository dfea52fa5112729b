// SPDX-License-Identifier: Apache-2.0
// Max-min fairness: nobody's rate can rise without lowering that of somebody who has no more.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace atp::plan {

// Something that all who use it share, such as a link: the sum of each one's rate times its load is at most `capacity`.
struct Resource {
    double capacity = 0;
    std::vector<double> loads;  // of each participant at a rate of 1; 0 where it does not use it
};

// All resources, with the loads that they have at these rates. Higher rates never make a load smaller.
using Resources = std::function<std::vector<Resource>(std::span<const double> rates)>;

struct Share {
    double rate = 0;
    std::size_t limit = 0;  // the resource that holds it back
};

// All rates rise together, each in proportion to its weight, until a resource is used up; those who use it stay there.
// `active[i]`: the participant wants something; the others get a rate of 0. Each active one uses some resource.
[[nodiscard]] std::vector<Share> share_fairly(const Resources& resources, std::span<const double> weights,
                                              const std::vector<bool>& active);

}  // namespace atp::plan
