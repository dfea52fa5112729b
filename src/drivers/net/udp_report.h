// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"

namespace atp::net {

// Features of a UDP socket that the kernel may lack.
enum class Feature : std::uint8_t { mmsg, gso, gro, ecn, no_fragments, busy_poll, receive_buffer, send_buffer };
inline constexpr std::size_t feature_count = 8;

[[nodiscard]] std::string_view to_string(Feature feature);

struct FeatureState {
    bool requested = false;  // configured
    bool in_use = false;
    std::string text;  // the setting in use, or why the feature is not in use

    [[nodiscard]] bool missing() const { return requested && !in_use; }
};

// The state of each feature of a socket. With some kernels and devices, only a send reveals that a feature is missing.
// The report then changes, and `revision` grows, so that the driver can log the change.
//
// Ownership: none. Threads: those of the socket. Failure: none.
class UdpReport {
  public:
    [[nodiscard]] const FeatureState& operator[](Feature feature) const {
        return states_[static_cast<std::size_t>(feature)];
    }
    [[nodiscard]] bool in_use(Feature feature) const { return (*this)[feature].in_use; }
    [[nodiscard]] std::uint32_t revision() const { return revision_; }
    // One line for each feature that is configured and not in use: "gso: EIO from the device ...".
    [[nodiscard]] std::vector<std::string> missing() const;
    // One line for each feature: "gso: off, wanted: EIO from the device ...".
    [[nodiscard]] std::string to_string() const;

    void set(Feature feature, bool requested, bool in_use, std::string text);
    void lose(Feature feature, std::string why);

  private:
    std::array<FeatureState, feature_count> states_;
    std::uint32_t revision_ = 0;
};

// tools/write_events writes the counters of a socket from src/events.toml.
// Counters only grow. A packet is a datagram. A message is the content of one buffer: with GSO or GRO, many packets.
// Messages show what offloads save, so only benchmarks read them.
struct UdpCounters {
    std::uint64_t received_packets = 0;   // packets received
    std::uint64_t received_bytes = 0;     // bytes received
    std::uint64_t receive_calls = 0;      // system calls that received
    std::uint64_t dropped_packets = 0;    // packets dropped because the receive buffer was full
    std::uint64_t truncated_packets = 0;  // packets longer than the protocol's longest
    std::uint64_t congested_packets = 0;  // datagrams with the CE mark
    std::uint64_t sent_packets = 0;       // packets sent
    std::uint64_t sent_bytes = 0;         // bytes sent
    std::uint64_t send_calls = 0;         // system calls that sent
    std::uint64_t refused_packets = 0;    // packets that the kernel refused to send
    std::uint64_t overrun_packets = 0;    // packets dropped because kernel and send queue were full
    std::uint64_t sent_messages = 0;      // messages given to the kernel, which divides them into packets
    std::uint64_t received_messages = 0;  // messages taken from the kernel, which joins packets into them
};

inline constexpr std::array udp_fields{
    counter<&UdpCounters::received_packets>("received_packets"),
    counter<&UdpCounters::received_bytes>("received_bytes"),
    counter<&UdpCounters::receive_calls>("receive_calls"),
    counter<&UdpCounters::dropped_packets>("dropped_by_kernel"),
    counter<&UdpCounters::truncated_packets>("truncated"),
    counter<&UdpCounters::congested_packets>("marked"),
    counter<&UdpCounters::sent_packets>("sent_packets"),
    counter<&UdpCounters::sent_bytes>("sent_bytes"),
    counter<&UdpCounters::send_calls>("send_calls"),
    counter<&UdpCounters::refused_packets>("refused_by_kernel"),
    counter<&UdpCounters::overrun_packets>("overrun"),
};
// End of the written part.

}  // namespace atp::net
