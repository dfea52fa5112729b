// SPDX-License-Identifier: Apache-2.0
#include "check/configuration.h"

namespace atp::check {
namespace {

const std::vector<UnitLayout> star2 = {{.workers = 2}};
const std::vector<UnitLayout> star3 = {{.workers = 3}};
const std::vector<UnitLayout> rack_and_direct = {{.workers = 2}, {.workers = 1, .direct = true}};
const std::vector<UnitLayout> two_racks = {{.workers = 2}, {.workers = 2}};

std::vector<Configuration> make_default() {
    return {
        {.name = "star2-w1",
         .what = "two workers, window 1",
         .units = star2,
         .window_log2 = 0,
         .tensors = {1, 1},
         .budget = Budget{.losses = 2, .duplicates = 1, .timeouts = 2}},
        {.name = "star2-w2",
         .what = "two workers, window 2",
         .units = star2,
         .window_log2 = 1,
         .tensors = {2, 1},
         .budget = Budget{.losses = 1, .duplicates = 1, .timeouts = 1}},
        {.name = "rack-direct-w1",
         .what = "",
         .units = rack_and_direct,
         .window_log2 = 0,
         .tensors = {1, 1},
         .budget = Budget{.losses = 1, .duplicates = 1, .timeouts = 1}},
    };
}

}  // namespace

std::span<const Configuration> default_configurations() {
    static const std::vector<Configuration> all = make_default();
    return all;
}

std::span<const Configuration> quick_configurations() { return default_configurations(); }

}  // namespace atp::check
