// SPDX-License-Identifier: Apache-2.0
// What ranks leave for each other in a store while they form a job. wire/control.h describes decoding, threads and
// failure; docs/spec/formation.md is normative.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/join_messages.h"
#include "wire/query_messages.h"

namespace atp::wire {

// tools/write_wire writes the messages from src/machines/wire/wire.toml.

// A rank that the sender does not reach.
struct ReachFault {
    std::uint16_t to = 0;  // number of that rank
    std::string why{};     // for people

    bool operator==(const ReachFault&) const = default;
};

// FACTS: what a rank says of itself before it uses the network. Sent by: each rank.
struct RankFacts {
    std::uint32_t job = 0;          // random. The job has that of rank 0
    std::uint64_t token = 0;        // random, not 0. The incarnation has that of rank 0
    std::uint32_t first_group = 0;  // random. The multicast group of channel 0 has that of rank 0
    bool shares = false;            // the rank shares memory with ranks of its host
    // of rank 0: it starts a switch if the ranks need one, and leaves SERVER under the name `switch`
    bool starts_switch = false;
    std::string kernel{};     // ranks with other words are on other hosts: start of the kernel and network namespace
    std::string host_name{};  // ranks with other names share no memory; empty: not set
    std::string socket{};     // abstract Unix socket at which this rank hands out memory; empty: none
    std::uint64_t secret_low = 0;   // what a rank shows at that socket, first half
    std::uint64_t secret_high = 0;  // second half
    std::string switch_address{};   // of rank 0: switch of the ranks that name none; empty: hosts serve the sums
    std::string terms{};            // options that must be equal on all ranks
};

// SHARED: whether a rank shares memory as the FACTS let it expect. Sent by: each rank.
struct SharedFacts {
    std::string problem{};  // why not; empty: it does, or it is alone on its host
};

// NETWORK: what a rank knows of its path to a switch, and of its links. Sent by: the first rank of each host.
struct NetworkFacts {
    std::vector<PathSwitch> path{};  // of the WELCOME of the switch that the rank names; none: it names none
    std::uint32_t lanes = 0;         // that fit a packet on the path to that switch; 0: it names none
    bool serves = false;             // can serve sums at an address of its own
    bool hosts_switch = false;       // its process runs the first switch of `path`
    // address of its host, without a port. Ranks with equal words share a link; empty: a host of its own
    std::string host{};
    std::string rack{};            // name of its rack, which a switch in the path serves; empty: none
    std::string uplink{};          // name of the link above its rack; empty: that of its switch
    double host_bits_per_s = 0;    // of the link of its host, in each direction; 0: not known
    double uplink_bits_per_s = 0;  // of the link above its rack; 0: not known
    // with `server=1`: of all its channels, in the order of their numbers; otherwise none
    std::vector<Endpoint> sockets{};
};

// SERVER: where a rank serves sums. Sent by: the first rank of each host.
struct ServerFacts {
    Endpoint address{};  // of its server; family 0: another rank of its host serves
};

// REACHED: which servers a rank reaches, and the switch that it runs for its rack. Sent by: the first rank of each
// host.
struct ReachedFacts {
    std::vector<std::uint32_t> lanes{};  // that fit a packet to each server, in the order of their ranks; 0: no answer
    std::vector<ReachFault> faults{};    // servers without an answer
    Endpoint leaf{};                     // where it adds for its rack; family 0: it does not
    std::uint32_t leaf_aggregators = 0;  // of that switch
    std::uint16_t leaf_lanes = 0;        // of each of them
};

// PLAN: what the other ranks of a host need to know of the job, as soon as its channels are ready. Sent by: the first
// rank of each host.
struct JobPlan {
    std::uint32_t job = 0;          // number of the job
    std::uint16_t channels = 0;     // number of channels
    std::uint16_t lanes = 0;        // lanes of a full fragment
    std::uint32_t window = 0;       // most fragments of a channel in flight
    std::uint32_t aggregators = 0;  // for the index function
    std::uint8_t units = 0;         // units of the job
    std::uint8_t levels = 0;        // levels of switches
    std::uint8_t layout = 0;        // 0 one switch above all ranks, 1 hosts, 2 leaves, 3 racks
};

// GAVE_UP: stands in place of a value: the formation fails on all ranks. Sent by: a rank that fails.
struct GaveUp {
    std::uint16_t rank = 0;  // of the rank that failed first
    // for programs: 10 timed out, 12 refused by a switch, 13 ranks disagree, 15 other; all numbers are in atp.h
    std::uint8_t reason = 0;
    std::string text{};  // for people
};

// End of the written part.

}  // namespace atp::wire
