// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "emulation/port_table.h"
#include "net/udp_config.h"
#include "wire/address.h"

namespace atp::switchd {

struct SwitchNodeConfig {
    net::UdpConfig udp;    // `local` is where it listens; its other wishes hold for every shard's socket
    wire::Address parent;  // the switch that joins this one with others; of no family: none
    bool serves_atp = true;
    std::uint64_t memory_bytes = 64'000'000;  // of all aggregators, of all shards; 0: aggregates nothing, hosts servers
    std::uint64_t pool_bytes = 0;             // of SwitchML's slots, of all shards; 0: does not serve SwitchML
    std::uint32_t kernel_aggregators = 0;  // of a table that packets pass before they come here; announced as its own
    std::uint16_t lanes = 352;             // of one aggregator, and of one slot
    std::uint32_t shards = 1;              // threads, each with its share of memory and of the channels
    std::vector<unsigned> cores;           // one for each shard, or none: wherever the kernel likes
    std::uint32_t jobs = 64;
    std::uint32_t channels = 256;
    std::uint64_t server_bytes = std::uint64_t{1} << 30U;
    Duration ageing = std::chrono::milliseconds(500);
    Duration hold = std::chrono::seconds(10);
    Duration spin{0};  // busy-polls for so long before it sleeps
    emulation::PortTableConfig ports;
    std::uint32_t held_packets = 4096;  // of emulated ports
};

// What one shard's table has: as many aggregators as its share of the memory holds.
[[nodiscard]] std::uint32_t aggregators_of_shard(const SwitchNodeConfig& config);
// And as many slots as its share of the pool.
[[nodiscard]] std::uint32_t slots_of_shard(const SwitchNodeConfig& config);

}  // namespace atp::switchd
