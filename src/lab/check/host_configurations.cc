// SPDX-License-Identifier: Apache-2.0
// The configurations of ranks that share the memory of a host.
#include <utility>

#include "check/configuration_entry.h"

namespace atp::check {

namespace {

// Without faults, only the size tells a long exploration from a short one.
void add(std::vector<ConfigurationEntry>& all, Configuration configuration, bool is_long = false) {
    configuration.protocol = Protocol::host;
    all.push_back({std::move(configuration), {}, {}, is_long});
}

void add_one_host(std::vector<ConfigurationEntry>& all) {
    add(all,
        {.name = "host2", .what = "host: two ranks, two operations", .units = {{.workers = 2}}, .tensors = {2, 1}});
    add(all, {.name = "host2-ranges",
              .what = "host: two ranks, chunks of two ranges, two slots",
              .units = {{.workers = 2}},
              .window_log2 = 1,
              .tensors = {2, 2},
              .aggregators = 2});
    add(all, {.name = "host2-mismatch",
              .what = "host: two ranks call different operations",
              .units = {{.workers = 2}},
              .tensors = {1, 2},
              .aggregators = 2,
              .mismatched_worker = 1});
    add(all, {.name = "host2-killed",
              .what = "host: one of two ranks is killed at any step",
              .units = {{.workers = 2}},
              .window_log2 = 1,
              .tensors = {2, 1},
              .aggregators = 2,
              .killed = 1});
    add(all, {.name = "host2-leaves",
              .what = "host: one of two ranks leaves before the last operation",
              .units = {{.workers = 2}},
              .tensors = {2, 1},
              .aggregators = 2,
              .leaver = 1});
    add(all,
        {.name = "host3-ranges",
         .what = "host: three ranks, chunks of two ranges, two slots",
         .units = {{.workers = 3}},
         .window_log2 = 1,
         .tensors = {1, 1},
         .aggregators = 2},
        true);
    add(all, {.name = "host4", .what = "host: four ranks", .units = {{.workers = 4}}, .tensors = {1}}, true);
    add(all,
        {.name = "host4-killed",
         .what = "host: one of four ranks is killed at any step",
         .units = {{.workers = 4}},
         .tensors = {1},
         .killed = 2},
        true);
    add(all, {.name = "host3", .what = "host: three ranks, one slot", .units = {{.workers = 3}}, .tensors = {2}});
    add(all, {.name = "host3-mismatch",
              .what = "host: one of three ranks calls another operation",
              .units = {{.workers = 3}},
              .tensors = {1},
              .mismatched_worker = 1});
    add(all, {.name = "host3-killed",
              .what = "host: one of three ranks is killed at any step",
              .units = {{.workers = 3}},
              .tensors = {2},
              .killed = 0});
}

// Rank 0 speaks for the host.
void add_host_of_many(std::vector<ConfigurationEntry>& all) {
    add(all, {.name = "host2-network",
              .what = "host: two ranks of many, chunks of two ranges, two slots",
              .units = {{.workers = 2}},
              .window_log2 = 1,
              .tensors = {2, 1},
              .aggregators = 2,
              .other_hosts = true});
    add(all,
        {.name = "host3-network",
         .what = "host: three ranks of many",
         .units = {{.workers = 3}},
         .tensors = {1, 1},
         .other_hosts = true},
        true);
    add(all, {.name = "host2-network-killed",
              .what = "host: the rank that speaks is killed at any step",
              .units = {{.workers = 2}},
              .tensors = {2, 1},
              .aggregators = 2,
              .other_hosts = true,
              .killed = 0});
    add(all, {.name = "host2-network-mismatch",
              .what = "host: two ranks of many call different operations",
              .units = {{.workers = 2}},
              .tensors = {1, 1},
              .aggregators = 2,
              .mismatched_worker = 1,
              .other_hosts = true});
}

}  // namespace

// The window is the number of ranges of a chunk, each tensor an operation of so many chunks, aggregators are slots.
void add_host(std::vector<ConfigurationEntry>& all) {
    add_one_host(all);
    add_host_of_many(all);
}

}  // namespace atp::check
