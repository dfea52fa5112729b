// SPDX-License-Identifier: Apache-2.0
// A worker's congestion window in bytes: additive increase, halving on congestion (ATP §3.7).
// Marks of congestion: switch.cc and server.cc turn them into a flag, answer_queue.cc returns it. worker.cc drives the
// window.
#pragma once

#include <algorithm>
#include <cstdint>

namespace atp::protocol {

// The windows of a job's channels together, before the first ACK: 200 packets of 306 B fit the bandwidth-delay product
// (ATP §3.7).
inline constexpr std::uint32_t first_window_bytes = 61'200;
inline constexpr std::uint32_t least_first_packets = 2;  // one packet would leave the path idle for each round trip

// Its channels begin at the same time and share links, so they share the first window. Equal on all ranks, which know
// the number of channels and the size of packets from the plan of the job (H32, docs/spec/hazards.md#h32).
[[nodiscard]] constexpr std::uint32_t first_window_packets(std::uint32_t channels, std::uint32_t packet_bytes) {
    return std::max(first_window_bytes / std::max(channels, 1U) / packet_bytes, least_first_packets);
}

struct CongestionConfig {
    std::uint32_t channels = 1;         // of the job: they share the first window and, after slow start, the step
    std::uint32_t initial_packets = 0;  // 0: first_window_packets()
    std::uint32_t step_bytes = 1500;    // one MTU: growth per ACK in slow start, per window after it
    // Congestion makes the window no smaller. As many packets as the channel may have in flight: the window only grows,
    // for links that lose packets without being full.
    std::uint32_t least_packets = 1;
    // Nor larger. A channel may have more slots than this, so that the window does not stand still while its oldest
    // fragment is recovered. 0: as many as the channel has slots.
    std::uint32_t most_packets = 0;
};

// Window of one channel. Calling order: on_ack() for each first ACK without ECN, on_congestion() at most once per
// window.
//
// Only ACKs and losses change it, and a pause does not, so a job may send its whole window after one. Ranks pause at
// different times: a restart by the clock would make their windows differ.
class CongestionWindow {
  public:
    CongestionWindow(const CongestionConfig& config, std::uint32_t packet_bytes, std::uint32_t max_packets)
        : channels_(std::max(config.channels, 1U)),
          packet_bytes_(packet_bytes),
          step_bytes_(std::max(config.step_bytes, packet_bytes)),
          max_bytes_(
              std::uint64_t{config.most_packets != 0 ? std::min(config.most_packets, max_packets) : max_packets} *
              packet_bytes),
          window_bytes_(std::min(std::uint64_t{first_packets(config, packet_bytes)} * packet_bytes, max_bytes_)),
          least_bytes_(std::min(std::uint64_t{std::max(config.least_packets, 1U)} * packet_bytes, max_bytes_)),
          threshold_bytes_(max_bytes_) {}

    [[nodiscard]] std::uint32_t window_packets() const {
        return static_cast<std::uint32_t>(window_bytes_ / packet_bytes_);
    }

    [[nodiscard]] bool is_fixed() const { return least_bytes_ == max_bytes_; }

    [[nodiscard]] bool has_halved() const { return threshold_bytes_ < max_bytes_; }

    // Of one window, and fewer are no congestion: links lose packets without being full.
    [[nodiscard]] std::uint32_t losses_of_a_full_queue() const { return std::max(window_packets() / 8, 4U); }

    void on_ack() {
        if (window_bytes_ >= max_bytes_) return;
        if (window_bytes_ < threshold_bytes_) {
            window_bytes_ += step_bytes_;
        } else {
            // One step per window, of all channels together: each ACK adds its share, and credit_bytes_ keeps the
            // remainder. Otherwise a job of four channels would take 1.5 times the rate of one with a single channel.
            credit_bytes_ += std::uint64_t{step_bytes_} * packet_bytes_ / channels_;
            window_bytes_ += credit_bytes_ / window_bytes_;
            credit_bytes_ %= window_bytes_;
        }
        window_bytes_ = std::min(window_bytes_, max_bytes_);
    }

    void on_congestion() {
        window_bytes_ = std::max(window_bytes_ / 2, least_bytes_);
        threshold_bytes_ = window_bytes_;
        credit_bytes_ = 0;
    }

    template <class Archive>
    void persist(Archive& archive) {
        archive.value(window_bytes_), archive.value(threshold_bytes_), archive.value(credit_bytes_);
    }

  private:
    [[nodiscard]] static std::uint32_t first_packets(const CongestionConfig& config, std::uint32_t packet_bytes) {
        return config.initial_packets != 0 ? config.initial_packets
                                           : first_window_packets(config.channels, packet_bytes);
    }

    std::uint32_t channels_;
    std::uint64_t packet_bytes_;
    std::uint64_t step_bytes_;
    std::uint64_t max_bytes_;
    std::uint64_t window_bytes_;
    std::uint64_t least_bytes_;
    std::uint64_t threshold_bytes_;   // slow start below it
    std::uint64_t credit_bytes_ = 0;  // growth not applied yet, times window_bytes_
};

}  // namespace atp::protocol
