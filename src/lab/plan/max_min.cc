// SPDX-License-Identifier: Apache-2.0
#include "plan/max_min.h"

#include <algorithm>
#include <limits>

namespace atp::plan {
namespace {

// Relative rounding tolerance of a capacity.
constexpr double tolerance = 1e-9;

class Filling {
  public:
    Filling(const Resources& resources, std::span<const double> weights, const std::vector<bool>& active)
        : resources_(resources), weights_(weights), rising_(active), rates_(active.size()), shares_(active.size()) {}

    std::vector<Share> fill() {
        while (std::ranges::find(rising_, true) != rising_.end()) {
            raise_to(highest_level());
            const std::vector<Resource> now = resources_(rates_);
            const std::size_t limit = fullest(now);
            stop_at(limit, now[limit]);
        }
        return std::move(shares_);
    }

  private:
    void raise_to(double level) {
        for (std::size_t i = 0; i < rates_.size(); ++i) {
            if (rising_[i]) rates_[i] = level * weights_[i];
        }
    }

    void stop_at(std::size_t limit, const Resource& resource) {
        for (std::size_t i = 0; i < rates_.size(); ++i) {
            if (!rising_[i] || resource.loads[i] == 0) continue;
            shares_[i] = {.rate = rates_[i], .limit = limit};
            rising_[i] = false;
        }
    }

    // The highest level at which no resource is overloaded. If loads do not depend on rates, a formula gives the level.
    // Otherwise bisection finds the level.
    double highest_level() {
        raise_to(0);
        double most = level_of_constant_loads(resources_(rates_));
        raise_to(most);
        if (fits()) return most;
        double least = 0;
        constexpr unsigned halvings = 50;
        for (unsigned i = 0; i < halvings; ++i) {
            const double middle = (least + most) / 2;
            raise_to(middle);
            (fits() ? least : most) = middle;
        }
        return least;
    }

    [[nodiscard]] double level_of_constant_loads(const std::vector<Resource>& resources) const {
        double level = std::numeric_limits<double>::infinity();
        for (const Resource& resource : resources) {
            double demand = 0;
            for (std::size_t i = 0; i < rates_.size(); ++i) {
                if (rising_[i]) demand += resource.loads[i] * weights_[i];
            }
            if (demand != 0) level = std::min(level, std::max(resource.capacity - used(resource), 0.0) / demand);
        }
        return level;
    }

    [[nodiscard]] double used(const Resource& resource) const {
        double sum = 0;
        for (std::size_t i = 0; i < rates_.size(); ++i) sum += resource.loads[i] * rates_[i];
        return sum;
    }

    [[nodiscard]] bool fits() const {
        const std::vector<Resource> now = resources_(rates_);
        return std::ranges::all_of(now,
                                   [&](const Resource& one) { return used(one) <= one.capacity * (1 + tolerance); });
    }

    // The resource with the largest used share, among the resources that participants with rising rates use.
    [[nodiscard]] std::size_t fullest(const std::vector<Resource>& resources) const {
        std::size_t found = 0;
        double most = -1;
        for (std::size_t r = 0; r < resources.size(); ++r) {
            const double share = used(resources[r]) / resources[r].capacity;
            if (share > most && is_used_by_rising(resources[r])) {
                found = r;
                most = share;
            }
        }
        return found;
    }

    [[nodiscard]] bool is_used_by_rising(const Resource& resource) const {
        for (std::size_t i = 0; i < rates_.size(); ++i) {
            if (rising_[i] && resource.loads[i] != 0) return true;
        }
        return false;
    }

    const Resources& resources_;
    std::span<const double> weights_;
    std::vector<bool> rising_;
    std::vector<double> rates_;
    std::vector<Share> shares_;
};

}  // namespace

std::vector<Share> share_fairly(const Resources& resources, std::span<const double> weights,
                                const std::vector<bool>& active) {
    return Filling(resources, weights, active).fill();
}

}  // namespace atp::plan
