// SPDX-License-Identifier: Apache-2.0
// A report of a switch in which nearly all counters of one thread differ.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <numeric>

#include "client/switch_report.h"

namespace atp::client {

// Counters first, first + 1, ... in the order of the struct.
template <class Counters>
void number(Counters& counters, std::uint64_t first) {
    std::array<std::uint64_t, sizeof(Counters) / sizeof(std::uint64_t)> values{};
    std::iota(values.begin(), values.end(), first);
    counters = std::bit_cast<Counters>(values);
}

inline ShardReport sample_thread() {
    ShardReport shard;
    shard.address = "127.0.0.1:4790";
    shard.aggregators = 40'000;
    number(shard.packets, 100);
    shard.packets.refused = {0, 3, 0, 5};
    number(shard.shard, 200);
    number(shard.tree, 300);
    number(shard.udp, 400);
    shard.features.set(net::Feature::mmsg, true, true, "64 messages");
    shard.features.set(net::Feature::gso, true, false, "EIO");
    shard.jobs = {{.job = 7, .counters = {}}, {.job = 8, .counters = {}}};
    number(shard.jobs[0].counters, 500);
    shard.channels.resize(2);
    shard.channels[0] = {.job = 7,
                         .channel = 1,
                         .level = 1,
                         .ready = true,
                         .present = 3,
                         .expected = 3,
                         .hosts = true,
                         .by_group = true,
                         .slowest = client::SlowestChild{
                             .rank = 3, .unit = 1, .share_percent = 99, .last_percent = 97, .waited_permille = 412}};
    number(shard.channels[0].server, 600);
    shard.channels[0].job_name = "resnet-50";
    shard.channels[0].tenant = "vision";
    shard.channels[0].server_bytes = 42'000'000;
    shard.slices = {{.tenant = "vision", .aggregators = 30'000, .held = 300}};
    shard.channels[1].job = 8;
    shard.channels[1].present = 1;
    shard.channels[1].expected = 2;
    shard.channels[1].slowest = {.unit = 2, .share_percent = 60};
    return shard;
}

inline ShardReport sample_kernel() {
    ShardReport shard;
    shard.address = "nobody";
    shard.aggregators = 44'444;
    shard.packets.events[ATP_EVENT_CLAIMED] = 30;
    shard.kernel = {.lanes = 352,
                    .level = 1,
                    .interfaces = {{"eth1", "native"}, {"eth2", "generic"}},
                    .passing_jobs = {8, 9},
                    .without_release = {"eth2: no clsact"},
                    .without_copies = {"eth1: no clsact"},
                    .marks = {{.interface = "eth1", .link_rate = 10'000'000'000, .marked = 12}},
                    .oversized = 5,
                    .damaged = 6,
                    .not_admitted = 7,
                    .copied_bytes = 8000,
                    .results_not_copied = 9};
    shard.jobs = {{.job = 8, .counters = {}}};
    number(shard.jobs[0].counters, 700);
    return shard;
}

inline SwitchReport sample_report() {
    SwitchReport node;
    node.id = 0xABCDEF;
    node.software = "atp 1.2.3";
    node.address = "127.0.0.1:4790";
    node.parent = "[2001:db8::1]:4790";
    node.parent_answers = true;
    node.draining = true;
    node.uptime_s = 12.5;
    node.hellos = 4321;
    node.lanes = 352;
    node.memory_bytes = 64'000'360;
    node.tenants = {{.name = "vision", .jobs = 8, .channels = 64, .server_bytes = 2'147'483'648}, {.name = "speech"}};
    node.shards = {sample_thread(), sample_kernel()};
    return node;
}

}  // namespace atp::client
