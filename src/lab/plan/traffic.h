// SPDX-License-Identifier: Apache-2.0
// Traffic of one iteration of a job on each link, for each system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/network.h"

namespace atp::plan {

struct System {
    enum class Kind : std::uint8_t {
        server,   // one parameter server, no aggregation in switches
        servers,  // one server on each worker's host, each for an equal part of the gradients
        ring,     // ring all-reduce
        atp,
        hosts,  // ATP with servers on all hosts, behind the leaves that aggregate: the best layout of control::
    };
    Kind kind = Kind::atp;
    std::vector<bool> aggregates;  // atp and hosts only, by switch
};

struct Traffic {
    std::vector<double> loads;   // by link: bytes on the wire per byte of gradients
    double flow = 0;             // load of one flow of the job; all flows of a link get the same rate
    Duration latency{};          // from the last byte of a bucket until all workers have its sum
    bool whole_buckets = false;  // the server sends a sum only when its bucket is complete
};

// Packets of an ATP job, and the number in flight.
struct Stream {
    std::uint32_t lanes = 0;
    double payload_bytes = 0;  // per packet
    double wire_bytes = 0;
    Duration round_trip{};  // with empty queues
    Duration queueing{};    // in the longest queue that congestion control allows
    double window = 0;      // maximum packets in flight

    // Packets in flight per worker at this rate.
    [[nodiscard]] double in_flight(double bytes_per_s) const;
    // Gradient rate of a full window.
    [[nodiscard]] double window_bytes_per_s() const;
};

// Whether ATP can sum the job's gradients with these switches. At least one of them must be on the job's path, and the
// units and members of the job must fit the bitmaps.
[[nodiscard]] bool can_serve(const Cluster& cluster, std::size_t job, const std::vector<bool>& aggregates);

// Whether the system can sum them.
[[nodiscard]] bool is_possible(const Cluster& cluster, std::size_t job, const System& system);

[[nodiscard]] Stream stream_of(const Cluster& cluster, std::size_t job, const std::vector<bool>& aggregates);

// `added`: by switch, share of packets that get an aggregator, 0 to 1.
[[nodiscard]] Traffic traffic_of(const Network& network, std::size_t job, const System& system,
                                 std::span<const double> added);

}  // namespace atp::plan
