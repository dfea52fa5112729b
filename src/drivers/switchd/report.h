// SPDX-License-Identifier: Apache-2.0
// What a switch tells of itself: copies, taken by each shard on its own thread and read by whoever asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/join_tree.h"
#include "emulation/port_table.h"
#include "net/udp_report.h"
#include "protocol/server.h"
#include "protocol/switch.h"
#include "switchml/pool_snapshot.h"

namespace atp::switchd {

struct ChannelSnapshot {
    std::uint32_t job = 0;
    std::uint16_t channel = 0;
    std::uint8_t level = 0;
    wire::ChannelProtocol protocol = wire::ChannelProtocol::atp;
    bool ready = false;
    bool hosts = false;
    wire::Address group{};       // of no family: the terms name none, or it is not for this switch to speak there
    bool by_group = false;       // results go there, and not to each child
    std::uint32_t present = 0;   // children
    std::uint32_t expected = 0;  // children
    protocol::ServerCounters server;
};

struct JobSnapshot {
    std::uint32_t job = 0;
    protocol::SwitchCounters counters;
};

struct ShardCounters {
    std::uint64_t unrouted = 0;  // of channels that did not join, or for nobody there
    std::uint64_t grouped = 0;   // results that went to a group, in place of a copy to each child
    std::uint64_t control_refused = 0;
    std::uint64_t letters_lost = 0;  // control messages that found the mailbox of another shard full
    std::uint64_t unheld = 0;        // emulated ports: no room to hold a packet
};

// What a switch inside the kernel has beside what every shard has.
struct KernelSnapshot {
    std::uint32_t lanes = 0;                                      // of one aggregator
    std::uint8_t level = 0;                                       // that it aggregates for
    std::vector<std::pair<std::string, std::string>> interfaces;  // and how frames meet it there
    std::vector<std::uint32_t>
        passing_jobs{};  // that are let pass, since only a part of their workers' packets came by
    std::vector<std::string> without_release{};  // interfaces where results of this box's servers free nothing, and why
    std::uint64_t oversized = 0;
    std::uint64_t damaged = 0;
    std::uint64_t not_admitted = 0;  // JOINs of jobs that found no room
};

struct ShardSnapshot {
    wire::Address address;
    std::uint32_t aggregators = 0;
    std::uint32_t occupied = 0;
    protocol::SwitchCounters packets;
    ShardCounters shard;
    control::TreeCounters tree;
    net::UdpCounters udp;
    net::UdpReport features;
    switchml::PoolSnapshot pool;
    std::vector<JobSnapshot> jobs;
    std::vector<ChannelSnapshot> channels;
    std::vector<emulation::PeerPorts> ports;
    std::optional<KernelSnapshot> kernel;
};

struct NodeSnapshot {
    std::uint64_t id = 0;
    std::string software;
    wire::Address address;
    wire::Address parent;
    bool parent_answers = false;
    double uptime_s = 0;
    std::uint16_t lanes = 0;
    std::uint64_t memory_bytes = 0;  // without what the kernel has
    std::uint64_t pool_bytes = 0;
    emulation::PortTableConfig ports;
    std::vector<ShardSnapshot> shards;
};

// What the aggregators of a switch inside the kernel take; 0 for any other shard.
[[nodiscard]] std::uint64_t memory_of_kernel(const ShardSnapshot& shard);

// One JSON object; docs/operate/monitor.md lists its keys. Tokens are capabilities and never in it.
[[nodiscard]] std::string to_json(const NodeSnapshot& snapshot);

}  // namespace atp::switchd
