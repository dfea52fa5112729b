// SPDX-License-Identifier: Apache-2.0
// Configurations in which switches put ACKs without lanes into lists.
#include "check/configuration_entry.h"

namespace atp::check {
namespace {

void add_lists_of_one_switch(std::vector<ConfigurationEntry>& all) {
    const std::vector<UnitLayout> star2 = {{.workers = 2}};
    const std::vector<UnitLayout> star3 = {{.workers = 3}};
    all.push_back({{.name = "lists3",
                    .what = "reduce-scatter, two fragments at a time: their ACKs to all share a list",
                    .units = star3,
                    .window_log2 = 1,
                    .tensors = {3},
                    .aggregators = 2,
                    .owned_tensors = 0x1,
                    .ack_lists = 2},
                   {.losses = 1, .duplicates = 1},
                   {.losses = 1}});
    all.push_back({{.name = "lists3-late",
                    .what = "as lists3, two fragments: timers expire before a list arrives",
                    .units = star3,
                    .window_log2 = 1,
                    .tensors = {2},
                    .aggregators = 2,
                    .owned_tensors = 0x1,
                    .ack_lists = 2},
                   {.losses = 1, .timeouts = 1},
                   {.losses = 1}});
    all.push_back({{.name = "lists-one",
                    .what = "one worker sends all fragments, and gets their ACKs in lists",
                    .units = star2,
                    .window_log2 = 1,
                    .tensors = {4},
                    .gathered_tensors = 0x1,
                    .one_owner = true,
                    .ack_lists = 2},
                   {.losses = 1},
                   {}});
    all.push_back({{.name = "lists-mixed",
                    .what = "a reduce-scatter and an all-gather: ACKs for all, and for each worker, wait at once",
                    .units = star3,
                    .window_log2 = 1,
                    .tensors = {1, 2},
                    .aggregators = 2,
                    .owned_tensors = 0x1,
                    .gathered_tensors = 0x2,
                    .ack_lists = 3},
                   {.losses = 1},
                   {}});
}

// Other switches are between the server and the switch that makes lists, or behind that switch.
void add_lists_of_several(std::vector<ConfigurationEntry>& all) {
    const std::vector<UnitLayout> star2 = {{.workers = 2}};
    const std::vector<UnitLayout> star3 = {{.workers = 3}};
    const std::vector<UnitLayout> two_racks = {{.workers = 2}, {.workers = 2}};
    all.push_back({{.name = "lists-racks",
                    .what = "reduce-scatter over two levels: the switches of racks make lists, the one above does not",
                    .units = two_racks,
                    .window_log2 = 1,
                    .tensors = {2},
                    .aggregators = 2,
                    .owned_tensors = 0x1,
                    .ack_lists = 2},
                   {.losses = 1},
                   {}});
    all.push_back({{.name = "lists-path",
                    .what = "sums for one worker; those of all others pass a switch in the path, which has no address",
                    .units = star3,
                    .window_log2 = 1,
                    .tensors = {3},
                    .aggregators = 2,
                    .owned_tensors = 0x1,
                    .one_owner = true,
                    .switch_in_path = true,
                    .ack_lists = 2},
                   {.losses = 1, .duplicates = 1},
                   {.losses = 1}});
    all.push_back({{.name = "lists-path-one",
                    .what = "one worker sends all fragments through a switch in the path",
                    .units = star2,
                    .window_log2 = 1,
                    .tensors = {3},
                    .gathered_tensors = 0x1,
                    .one_owner = true,
                    .switch_in_path = true,
                    .ack_lists = 2},
                   {.losses = 1, .duplicates = 1},
                   {.losses = 1}});
}

}  // namespace

void add_lists(std::vector<ConfigurationEntry>& all) {
    add_lists_of_one_switch(all);
    add_lists_of_several(all);
}

}  // namespace atp::check
