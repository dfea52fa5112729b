// SPDX-License-Identifier: Apache-2.0
// How long a packet may be on the way to a peer. Bytes are of UDP payload throughout, but where the name says MTU.
#pragma once

#include <cstdint>

#include "wire/address.h"

namespace atp::control {

// The least that every path must carry: 1,280 (RFC 8200) less an IPv6 and a UDP header. IPv4 promises less and every
// link in use gives more.
inline constexpr std::uint32_t least_path_payload_bytes = 1232;

[[nodiscard]] std::uint32_t payload_of_mtu(std::uint32_t mtu_bytes, wire::Family family);

// The search for the longest packet that really arrives (RFC 8899's, for one sender that decides when it probes): the
// ceiling first, because most paths carry what their first link does, then halving. A lost probe may be an accident, so
// a size counts as too long only after several in a row.
//
// Calling order: while !done(), send a packet of probe_bytes() that the peer answers, with fragments forbidden; then
// handle_arrived() when the answer comes, handle_lost() when it does not in time, handle_too_long() when the kernel
// refuses to send it (EMSGSIZE).
// Owns: nothing. Threads: one. Failure: none; without any answer at all, found() is 0.
class PathMtuSearch {
  public:
    // `floor` is tried only if nothing longer arrives. Sizes between floor and ceiling are found to within `step`
    // bytes.
    PathMtuSearch(std::uint32_t floor_bytes, std::uint32_t ceiling_bytes, std::uint32_t step_bytes = 8,
                  std::uint32_t attempts = 3);

    [[nodiscard]] bool done() const { return probe_bytes_ == 0; }
    [[nodiscard]] std::uint32_t probe_bytes() const { return probe_bytes_; }
    [[nodiscard]] std::uint32_t found_bytes() const { return arrived_bytes_; }

    // About a probe of `bytes`; late news of an earlier one are welcome too.
    void handle_arrived(std::uint32_t bytes);
    void handle_lost(std::uint32_t bytes);
    void handle_too_long(std::uint32_t bytes);

  private:
    void choose();

    std::uint32_t floor_bytes_;
    std::uint32_t step_bytes_;
    std::uint32_t attempts_;
    std::uint32_t arrived_bytes_ = 0;  // the longest that did
    std::uint32_t too_long_bytes_;     // the shortest known not to
    std::uint32_t probe_bytes_ = 0;    // 0: done
    std::uint32_t losses_ = 0;         // in a row, of that size
};

}  // namespace atp::control
