// SPDX-License-Identifier: Apache-2.0
// The longest packet that a path to a peer carries. All lengths are bytes of UDP payload, except those named MTU.
#pragma once

#include <cstdint>

#include "wire/address.h"

namespace atp::control {

// Payload that every path must carry: an MTU of 1,280 bytes (RFC 8200) less an IPv6 and a UDP header. IPv4 guarantees
// less, but every link in use carries more.
inline constexpr std::uint32_t least_path_payload_bytes = 1232;

[[nodiscard]] std::uint32_t payload_of_mtu(std::uint32_t mtu_bytes, wire::Family family);
// Most lanes of a packet with at most this payload.
[[nodiscard]] std::uint32_t lanes_of_payload(std::uint32_t payload_bytes);
// What jobs and switches use of these lanes unless they are told otherwise: whole vectors of 8.
[[nodiscard]] constexpr std::uint32_t usual_lanes(std::uint32_t lanes) { return lanes / 8 * 8; }

// Searches the longest packet that arrives at the peer, as RFC 8899 does. The caller decides when to probe. The ceiling
// is probed first, because most paths carry the length of their first link; then the interval is halved. A probe can be
// lost for another reason than its length, so a size is too long only after `attempts` losses in a row.
//
// Ownership: none.
// Calling order: while !done(), send a packet of probe_bytes() that the peer answers, with IP fragmentation forbidden.
//   Then call handle_arrived() for the answer, handle_lost() after a timeout, or handle_too_long() if the kernel
//   refuses to send it (EMSGSIZE).
// Threads: none. One thread drives one search.
// Failure: none; if no probe is answered, found_bytes() is 0.
class PathMtuSearch {
  public:
    // `least_bytes` is probed only after the ceiling was too long. The longest size that arrives exceeds found_bytes()
    // by less than `step_bytes`. If that size is below `least_bytes`, found_bytes() is 0.
    PathMtuSearch(std::uint32_t least_bytes, std::uint32_t ceiling_bytes, std::uint32_t step_bytes = 8,
                  std::uint32_t attempts = 3);

    [[nodiscard]] bool done() const { return probe_bytes_ == 0; }
    [[nodiscard]] std::uint32_t probe_bytes() const { return probe_bytes_; }
    [[nodiscard]] std::uint32_t found_bytes() const { return arrived_bytes_; }

    // The result of a probe of `bytes`, which may be an earlier probe than the current one.
    void handle_arrived(std::uint32_t bytes);
    void handle_lost(std::uint32_t bytes);
    void handle_too_long(std::uint32_t bytes);

  private:
    void choose();

    std::uint32_t least_bytes_;
    std::uint32_t step_bytes_;
    std::uint32_t attempts_;
    std::uint32_t arrived_bytes_ = 0;  // longest probe that arrived; 0: none
    std::uint32_t too_long_bytes_;     // shortest size taken as too long
    std::uint32_t probe_bytes_ = 0;    // 0: done
    std::uint32_t losses_ = 0;         // of probe_bytes_, in a row
};

}  // namespace atp::control
