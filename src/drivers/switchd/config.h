// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/siphash.h"
#include "base/time.h"
#include "control/address_range.h"
#include "control/channel_key.h"
#include "control/tenants.h"
#include "control/timing.h"
#include "net/transport.h"
#include "net/udp_config.h"
#include "observe/log.h"
#include "observe/trace_file.h"
#include "protocol/index_rule.h"
#include "switchd/memory_of_host.h"
#include "wire/address.h"

namespace atp::switchd {

struct SwitchNodeConfig {
    net::UdpConfig udp;    // `local`: address of the switch; the other settings apply to the socket of every shard
    wire::Address parent;  // switch of the next level; no family: none
    std::uint64_t memory_bytes = 64'000'000;  // aggregators of all shards; 0: no aggregation, servers only
    std::uint32_t kernel_aggregators = 0;     // of the kernel table in front, 0: none; reported in WELCOME
    std::uint16_t lanes = 352;                // per aggregator
    std::uint32_t shards = 1;                 // threads, which divide memory and channels
    std::vector<unsigned> cores;              // one per shard; empty: chosen by the kernel
    std::uint32_t jobs = 64;                  // most jobs of all shards together
    std::uint32_t channels = 256;             // most channels of all shards together
    // Of all hosted servers; shards divide it.
    std::uint64_t server_bytes = MemoryOfHost::of_this_host().usual_server_bytes();
    Duration ageing = std::chrono::milliseconds(500);  // as protocol::SwitchConfig
    Duration hold = control::timing.hold;              // a member without a JOIN for this long is removed
    Duration spin{0};                                  // time to poll before a thread sleeps

    std::vector<control::AddressRange> servers;             // that jobs may name as server or root; empty: any host
    std::vector<control::AddressRange> groups;              // to which jobs may have results sent by multicast
    std::vector<control::AddressRange> clients;             // that may join and ask; empty: any host
    std::shared_ptr<const control::Tenants> tenants{};      // nullptr: the switch is open
    std::shared_ptr<const crypto::TenantKey> parent_key{};  // with which it joins its parent; nullptr: none
    std::optional<control::JobKey> only{};                  // the one job that may join; nullopt: any

    Secret secret{};      // of all shards; the node sets it
    Secret ticket_key{};  // of all shards, from state_file.h; zero: the node draws one

    std::shared_ptr<observe::Log> log{};          // nullptr: none
    std::shared_ptr<observe::TraceFile> trace{};  // gets all packets of the shards; nullptr: none

    // Of the channels whose servers it hosts; their ranks need the same rule. nullptr: the hash of the protocol.
    std::shared_ptr<const protocol::IndexRule> indices{};
    // Opens the transport of a shard with this number; empty: a UDP socket.
    std::function<Result<std::unique_ptr<net::Transport>>(const net::UdpConfig&, std::uint32_t)> open_transport{};
    std::function<void()> enter_thread{};  // called first by each thread that has packets; empty: nothing is
    std::string report_parts;              // additions to the report of the node: one JSON object; empty: none
};

// The transport of shard `number`. The first shard has the address of the switch, the others ports of their own.
[[nodiscard]] Result<std::unique_ptr<net::Transport>> open_transport(const SwitchNodeConfig& config,
                                                                     std::uint32_t number);

// Aggregators of one shard: as many as its share of memory_bytes holds.
[[nodiscard]] std::uint32_t aggregators_of_shard(const SwitchNodeConfig& config);

}  // namespace atp::switchd
