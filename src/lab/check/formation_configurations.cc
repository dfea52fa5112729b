// SPDX-License-Identifier: Apache-2.0
// The configurations of ranks that form a job through a store.
#include <utility>

#include "check/configuration_entry.h"

namespace atp::check {

// Without faults, only the number of ranks tells a long exploration from a short one.
void add_formation(std::vector<ConfigurationEntry>& all) {
    const auto add = [&all](Configuration configuration, bool is_long = false) {
        configuration.protocol = Protocol::formation;
        all.push_back({std::move(configuration), {}, {}, is_long});
    };
    add({.name = "form3", .what = "formation: three ranks begin and read in any order", .units = {{.workers = 3}}});
    add({.name = "form3-differs",
         .what = "formation: one of three ranks has other options",
         .units = {{.workers = 3}},
         .mismatched_worker = 2});
    add({.name = "form3-first-differs",
         .what = "formation: rank 0 of three has other options",
         .units = {{.workers = 3}},
         .mismatched_worker = 0});
    add({.name = "form3-world",
         .what = "formation: one of three ranks expects four",
         .units = {{.workers = 3}},
         .mismatched_worker = 1,
         .differs_in_world = true});
    add({.name = "form2-killed",
         .what = "formation: one of two ranks is killed at any step, and times end",
         .units = {{.workers = 2}},
         .killed = 0});
    add({.name = "form3-killed",
         .what = "formation: one of three ranks is killed at any step, and times end",
         .units = {{.workers = 3}},
         .killed = 1},
        true);
}

}  // namespace atp::check
