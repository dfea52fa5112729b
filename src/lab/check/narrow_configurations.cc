// SPDX-License-Identifier: Apache-2.0
// Configurations of narrow integers, whose floats and wide results need several packets.
#include "check/configuration_entry.h"

namespace atp::check {

void add_narrow_numbers(std::vector<ConfigurationEntry>& all) {
    const std::vector<UnitLayout> star{{.workers = 2}};
    const std::vector<UnitLayout> rack_and_direct{{.workers = 2}, {.workers = 1, .direct = true}};
    all.push_back({{.name = "int16-float",
                    .what = "one worker's value does not fit an integer, and its floats need two packets",
                    .units = star,
                    .tensors = {1},
                    .values = Values::too_large,
                    .int16_lanes = true},
                   {},
                   {}});
    all.push_back({{.name = "int16-overflow",
                    .what = "int16 overflow in the switch, and the result needs two packets",
                    .units = star,
                    .tensors = {1, 1},
                    .values = Values::wide_sums,
                    .int16_lanes = true},
                   {.losses = 2, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .duplicates = 1, .timeouts = 1}});
    all.push_back({{.name = "int16-levels",
                    .what = "int16 overflow over two levels, then sums that fit",
                    .units = rack_and_direct,
                    .tensors = {1, 1},
                    .values = Values::wide_sums,
                    .int16_lanes = true},
                   {.losses = 1, .timeouts = 1},
                   {.losses = 1}});
}

}  // namespace atp::check
