// SPDX-License-Identifier: Apache-2.0
// Configurations of fragments with an owner: reduce-scatter and all-gather.
#include "check/configuration_entry.h"

namespace atp::check {
namespace {

void add_sums(std::vector<ConfigurationEntry>& all) {
    const std::vector<UnitLayout> star2 = {{.workers = 2}};
    const std::vector<UnitLayout> star3 = {{.workers = 3}};
    const std::vector<UnitLayout> rack_and_direct = {{.workers = 2}, {.workers = 1, .direct = true}};
    all.push_back({{.name = "scatter2",
                    .what = "reduce-scatter: each sum goes to one of two workers in turn",
                    .units = star2,
                    .tensors = {3},
                    .owned_tensors = 0x1},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "scatter2-shared",
                    .what = "reduce-scatter: two fragments at a time share one aggregator, then an all-reduce",
                    .units = star2,
                    .window_log2 = 1,
                    .tensors = {2, 1},
                    .owned_tensors = 0x1},
                   {.losses = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "scatter-levels",
                    .what = "reduce-scatter over two levels",
                    .units = rack_and_direct,
                    .tensors = {1, 1},
                    .owned_tensors = 0x3},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "scatter-float",
                    .what = "reduce-scatter: one worker's value does not fit an integer",
                    .units = star3,
                    .tensors = {1},
                    .values = Values::too_large,
                    .owned_tensors = 0x1},
                   {.losses = 1, .duplicates = 1},
                   {.losses = 1}});
    all.push_back({{.name = "scatter-bypass",
                    .what = "reduce-scatter: one worker passes the switch, which holds the sum of the others",
                    .units = star3,
                    .tensors = {2},
                    .values = Values::one_large,
                    .bounded = true,
                    .owned_tensors = 0x1},
                   {.losses = 2, .duplicates = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "scatter-home",
                    .what = "sums for one worker, one of whose values does not fit an integer",
                    .units = star2,
                    .tensors = {3},
                    .values = Values::owner_too_large,
                    .owned_tensors = 0x1,
                    .one_owner = true},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "scatter-home-window",
                    .what = "as scatter-home, two fragments at a time",
                    .units = star2,
                    .window_log2 = 1,
                    .tensors = {3},
                    .values = Values::owner_too_large,
                    .owned_tensors = 0x1,
                    .one_owner = true},
                   {.losses = 1},
                   {.losses = 1}});
    all.push_back({{.name = "scatter-overflow",
                    .what = "reduce-scatter: the sum of all but the owner leaves 32 bits",
                    .units = star3,
                    .tensors = {1, 3},
                    .values = Values::saturating,
                    .owned_tensors = 0x3},
                   {.losses = 1, .duplicates = 1},
                   {.losses = 1}});
}

void add_copies(std::vector<ConfigurationEntry>& all) {
    const std::vector<UnitLayout> star2 = {{.workers = 2}};
    all.push_back({{.name = "gather2",
                    .what = "all-gather: two workers send in turn",
                    .units = star2,
                    .tensors = {4},
                    .gathered_tensors = 0x1},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "gather2-one",
                    .what = "one worker sends all fragments to another, which may lag behind",
                    .units = star2,
                    .tensors = {4},
                    .gathered_tensors = 0x1,
                    .one_owner = true},
                   {.losses = 1, .duplicates = 1, .timeouts = 1},
                   {.losses = 1, .timeouts = 1}});
    all.push_back({{.name = "gather3",
                    .what = "all-gather of three workers, two fragments at a time",
                    .units = {{.workers = 3}},
                    .window_log2 = 1,
                    .tensors = {3},
                    .gathered_tensors = 0x1},
                   {.losses = 1},
                   {}});
    all.push_back({{.name = "gather-mixed",
                    .what = "a reduce-scatter, an all-gather and an all-reduce, two fragments at a time",
                    .units = star2,
                    .window_log2 = 1,
                    .tensors = {1, 2, 1},
                    .owned_tensors = 0x1,
                    .gathered_tensors = 0x2},
                   {.losses = 1},
                   {.losses = 1}});
}

}  // namespace

void add_owners(std::vector<ConfigurationEntry>& all) {
    add_sums(all);
    add_copies(all);
}

}  // namespace atp::check
