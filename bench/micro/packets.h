// SPDX-License-Identifier: Apache-2.0
// Packets in one contiguous buffer, like the receive buffers of a driver, and values of lanes with known sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "measure.h"
#include "wire/format.h"

namespace atp::bench {

inline constexpr std::size_t workers = 8;
// Number of lanes of a packet.
inline constexpr std::uint32_t lanes_of_mtu = 352;  // fills an MTU of 1,500 bytes
inline constexpr std::uint32_t lanes_of_papers = 62;

class Packets {
  public:
    Packets(std::size_t count, std::size_t lanes)
        : count_(count), packet_bytes_(ATP_HEADER_BYTES + lanes * ATP_LANE_BYTES), bytes_(count * packet_bytes_) {}

    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] std::size_t packet_bytes() const { return packet_bytes_; }
    std::span<std::byte> packet(std::size_t at) { return {bytes_.data() + at * packet_bytes_, packet_bytes_}; }
    std::byte* lanes_of(std::size_t at) { return packet(at).data() + ATP_HEADER_BYTES; }
    [[nodiscard]] std::uint64_t hash() const { return hash_bytes(bytes_.data(), bytes_.size()); }

    void set(std::size_t at, std::size_t lane, std::int32_t value) {
        const std::uint32_t bits = __builtin_bswap32(static_cast<std::uint32_t>(value));
        std::memcpy(lanes_of(at) + lane * ATP_LANE_BYTES, &bits, sizeof bits);
    }

    [[nodiscard]] std::int32_t get(std::size_t at, std::size_t lane) {
        std::uint32_t bits;
        std::memcpy(&bits, lanes_of(at) + lane * ATP_LANE_BYTES, sizeof bits);
        return static_cast<std::int32_t>(__builtin_bswap32(bits));
    }

  private:
    std::size_t count_;
    std::size_t packet_bytes_;
    std::vector<std::byte> bytes_;
};

// The value at index `at` of a tensor: 24 bits, so that the sum of all workers fits int32 and float32 represents the
// value exactly. Values differ between indices, so that a misplaced lane is detected.
inline std::int32_t lane_value(std::size_t at) {
    constexpr std::uint32_t golden_ratio = 0x9E3779B1U;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(at) * golden_ratio) >> 8;
}

}  // namespace atp::bench
