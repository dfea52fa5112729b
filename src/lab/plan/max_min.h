// SPDX-License-Identifier: Apache-2.0
// Max-min fairness: a rate can rise only if another rate, which is not higher, becomes lower.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace atp::plan {

// A shared resource, such as a link. The sum of rate times load over all participants is at most `capacity`.
struct Resource {
    double capacity = 0;
    std::vector<double> loads;  // by participant: use per unit of rate; 0: does not use the resource
};

// All resources, with their loads at these rates. Higher rates must not make a load smaller.
using Resources = std::function<std::vector<Resource>(std::span<const double> rates)>;

struct Share {
    double rate = 0;
    std::size_t limit = 0;  // index of the resource that limits the rate
};

// Raises all rates together, in proportion to their weights. When a resource is used up, the rates of its users no
// longer rise. `active[i]`: participant i sends; other participants get rate 0. Each active participant must use a
// resource.
[[nodiscard]] std::vector<Share> share_fairly(const Resources& resources, std::span<const double> weights,
                                              const std::vector<bool>& active);

}  // namespace atp::plan
