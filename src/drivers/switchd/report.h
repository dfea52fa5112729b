// SPDX-License-Identifier: Apache-2.0
// Report of a switch: copies that each shard makes on its own thread, for readers on other threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/join_tree.h"
#include "net/udp_report.h"
#include "protocol/server.h"
#include "protocol/switch.h"

namespace atp::switchd {

struct ChannelSnapshot {
    std::uint32_t job = 0;
    std::uint16_t channel = 0;
    std::uint8_t level = 0;
    wire::ChannelProtocol protocol = wire::ChannelProtocol::atp;
    bool ready = false;
    bool hosts = false;
    wire::Address group{};       // no family: the terms name none, or this switch does not send to it
    bool by_group = false;       // results go to the group, not to each child
    std::uint32_t present = 0;   // children that joined
    std::uint32_t expected = 0;  // children when complete
    protocol::ServerCounters server;
};

struct JobSnapshot {
    std::uint32_t job = 0;
    protocol::SwitchCounters counters;
};

struct ShardCounters {
    std::uint64_t unrouted = 0;  // packets of unknown channels, without a receiver, or that the send queue refused
    std::uint64_t grouped = 0;   // results sent to a group instead of one copy per child
    std::uint64_t control_refused = 0;
    std::uint64_t letters_lost = 0;  // control messages dropped: the mailbox of their shard was full
};

// State of a kernel switch, in addition to what every shard has.
struct KernelSnapshot {
    std::uint32_t lanes = 0;                                      // per aggregator
    std::uint8_t level = 0;                                       // hop that it aggregates for
    std::vector<std::pair<std::string, std::string>> interfaces;  // name; native, generic or gone
    std::vector<std::uint32_t> passing_jobs{};   // forwarded unaggregated: only a part of their packets passes here
    std::vector<std::string> without_release{};  // interfaces where this host's servers free no aggregators, and why
    std::uint64_t oversized = 0;
    std::uint64_t damaged = 0;
    std::uint64_t not_admitted = 0;  // JOINs of jobs for which the table of jobs had no entry
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
    std::vector<JobSnapshot> jobs;
    std::vector<ChannelSnapshot> channels;
    std::vector<std::string> parts{};  // JSON objects whose keys the report of the shard has too: experiments
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
    std::uint64_t memory_bytes = 0;  // in user space, without the kernel's table
    std::string parts;               // one JSON object whose keys the report has too: experiments; empty: none
    std::vector<ShardSnapshot> shards;
};

// Bytes of the aggregators of a kernel switch; 0 for any other shard.
[[nodiscard]] std::uint64_t memory_of_kernel(const ShardSnapshot& shard);

// One JSON object; docs/operate/monitor.md lists its keys. It contains no tokens, because tokens are capabilities.
[[nodiscard]] std::string to_json(const NodeSnapshot& snapshot);

}  // namespace atp::switchd
