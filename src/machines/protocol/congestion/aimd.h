// SPDX-License-Identifier: Apache-2.0
// A worker's congestion window: additive increase, halving on congestion (ATP §3.7), counted in bytes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace atp::protocol {

struct CongestionConfig {
    std::uint32_t initial_packets = 200;  // §3.7: 200 packets of 306 B are within the bandwidth-delay product
    std::uint32_t step_bytes = 1500;      // one MTU: an ACK's growth in slow start, a window's growth after it
    std::uint32_t newer_acks = 3;         // distinct newer ACKs that call a fragment lost
    bool halve = true;                    // off to repeat the papers' loss experiments without congestion control
};

class CongestionWindow {
  public:
    CongestionWindow(const CongestionConfig& config, std::uint32_t packet_bytes, std::uint32_t max_packets)
        : packet_bytes_(packet_bytes),
          step_bytes_(std::max(config.step_bytes, packet_bytes)),
          max_bytes_(std::uint64_t{max_packets} * packet_bytes),
          window_bytes_(std::min(std::uint64_t{std::max(config.initial_packets, 1U)} * packet_bytes, max_bytes_)),
          threshold_bytes_(max_bytes_) {}

    [[nodiscard]] std::uint32_t window_packets() const {
        return static_cast<std::uint32_t>(window_bytes_ / packet_bytes_);
    }

    void on_ack() {
        if (window_bytes_ >= max_bytes_) return;
        if (window_bytes_ < threshold_bytes_) {
            window_bytes_ += step_bytes_;
        } else {
            // One step a window: each of its packets brings its share, remainders are kept.
            credit_bytes_ += std::uint64_t{step_bytes_} * packet_bytes_;
            window_bytes_ += credit_bytes_ / window_bytes_;
            credit_bytes_ %= window_bytes_;
        }
        window_bytes_ = std::min(window_bytes_, max_bytes_);
    }

    void on_congestion() {
        window_bytes_ = std::max<std::uint64_t>(window_bytes_ / 2, packet_bytes_);
        threshold_bytes_ = window_bytes_;
        credit_bytes_ = 0;
    }

    template <class Archive>
    void persist(Archive& archive) {
        archive.value(window_bytes_), archive.value(threshold_bytes_), archive.value(credit_bytes_);
    }

  private:
    std::uint64_t packet_bytes_;
    std::uint64_t step_bytes_;
    std::uint64_t max_bytes_;
    std::uint64_t window_bytes_;
    std::uint64_t threshold_bytes_;
    std::uint64_t credit_bytes_ = 0;
};

}  // namespace atp::protocol
