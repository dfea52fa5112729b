// SPDX-License-Identifier: Apache-2.0
// What one iteration of a job puts on each link, by the system that sums its gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/network.h"

namespace atp::plan {

struct System {
    enum class Kind : std::uint8_t {
        server,   // one parameter server, without switches
        servers,  // one on each worker's host, for an equal part
        ring,     // all-reduce
        atp,
    };
    Kind kind = Kind::atp;
    std::vector<bool> aggregates;  // of ATP, by switch
};

struct Traffic {
    std::vector<double> loads;   // by link: bytes on the wire for each byte of gradients
    double flow = 0;             // of these, one flow's: flows share a link evenly
    Duration latency{};          // of a bucket's last byte, until all have its sum
    bool whole_buckets = false;  // a sum leaves the server when all of its bucket is there
};

// How ATP's packets of a job look, and how many are under way.
struct Stream {
    std::uint32_t lanes = 0;
    double payload_bytes = 0;  // of a packet
    double wire_bytes = 0;
    Duration round_trip{};  // through empty queues
    Duration queueing{};    // in the longest queue that congestion control lets grow
    double window = 0;      // packets under way at most

    // Packets under way, of each worker, at this rate.
    [[nodiscard]] double under_way(double bytes_per_s) const;
    // Bytes of gradients that a full window moves.
    [[nodiscard]] double window_bytes_per_s() const;
};

// Whether ATP can sum the job's gradients with these switches: one at least stands on its way, and none has more of its
// workers and switches below than a bitmap has bits.
[[nodiscard]] bool can_serve(const Cluster& cluster, std::size_t job, const std::vector<bool>& aggregates);

[[nodiscard]] Stream stream_of(const Cluster& cluster, std::size_t job, const std::vector<bool>& aggregates);

// `added`: by switch, the share of the packets that find an aggregator there.
[[nodiscard]] Traffic traffic_of(const Network& network, std::size_t job, const System& system,
                                 std::span<const double> added);

}  // namespace atp::plan
