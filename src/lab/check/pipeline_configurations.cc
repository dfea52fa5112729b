// SPDX-License-Identifier: Apache-2.0
// Configurations of switches that are pipelines: a packet passes several times, and may be lost or overtaken between.
#include "check/configuration_entry.h"

namespace atp::check {

void add_pipelines(std::vector<ConfigurationEntry>& all) {
    const std::vector<UnitLayout> star2 = {{.workers = 2}};
    const std::vector<UnitLayout> star3 = {{.workers = 3}};
    const std::vector<UnitLayout> racks = {{.workers = 2}, {.workers = 2}};
    const std::vector<UnitLayout> rack_and_direct = {{.workers = 2}, {.workers = 1, .direct = true}};
    const auto add = [&all](Configuration configuration, const Budget& full, const Budget& quick) {
        if (configuration.pipelines == 0) configuration.pipelines = every_switch;
        all.push_back({std::move(configuration), full, quick});
    };
    add({.name = "pipeline2",
         .what = "a pipeline with two workers, one fragment at a time",
         .units = star2,
         .tensors = {2}},
        {.losses = 2, .duplicates = 1, .timeouts = 2, .ageings = 1, .restarts = 1}, {.losses = 1, .timeouts = 2});
    add({.name = "pipeline2-shared",
         .what = "a pipeline: two fragments at a time share one aggregator",
         .units = star2,
         .window_log2 = 1,
         .tensors = {2}},
        {.losses = 1, .timeouts = 1, .ageings = 1}, {.timeouts = 1});
    add({.name = "pipeline2-three",
         .what = "a pipeline: three fragments, two at a time, share one aggregator",
         .units = star2,
         .window_log2 = 1,
         .tensors = {3}},
        {.losses = 1, .timeouts = 1}, {});
    add({.name = "pipeline3", .what = "a pipeline with three workers", .units = star3, .tensors = {2}},
        {.losses = 1, .timeouts = 1, .ageings = 1}, {.timeouts = 1});
    add({.name = "pipeline-marked",
         .what = "a pipeline: all gradients of one worker have a congestion mark",
         .units = star2,
         .tensors = {1},
         .marked_worker = 1},
        {.losses = 1, .timeouts = 2}, {.losses = 1, .timeouts = 1});
    add({.name = "pipeline-jobs",
         .what = "two jobs share one aggregator of a pipeline",
         .units = star2,
         .jobs = 2,
         .tensors = {2}},
        {.losses = 1, .ageings = 1}, {.ageings = 1});
    add({.name = "pipeline-levels",
         .what = "pipelines at both levels: a rack of two, and a direct worker",
         .units = rack_and_direct,
         .tensors = {2}},
        {.losses = 1, .duplicates = 1, .timeouts = 1}, {.losses = 1, .timeouts = 1});
    add({.name = "pipeline-mixed",
         .what = "a pipeline in one rack, a software switch in the other and above",
         .units = racks,
         .tensors = {1},
         .pipelines = 0x1},
        {.losses = 1, .timeouts = 1}, {.duplicates = 1});
}

}  // namespace atp::check
