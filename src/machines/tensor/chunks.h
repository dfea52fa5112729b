// SPDX-License-Identifier: Apache-2.0
// How a tensor is cut if some ranks of a job share memory: into chunks, which the channels take in turn. All hosts cut
// it equally, whatever they share.
#pragma once

#include <algorithm>
#include <cstdint>

namespace atp::tensor {

struct ChunkRules {
    std::uint64_t payload_lanes = 1;  // of a packet
    std::uint32_t channels = 1;
    std::uint64_t most_lanes = 1;  // of a chunk, in the memory of a host
};

// A chunk is whole spans of `span` elements or, without spans (0), full packets and whole elements: an int64 has three
// lanes. Each channel gets two chunks of a long tensor at least, so that one is on the network while the next one is
// added. Shorter chunks would cost more than they win.
[[nodiscard]] inline std::uint64_t lanes_of_chunk(const ChunkRules& rules, std::uint64_t lanes, std::uint64_t span) {
    constexpr std::uint64_t lanes_of_element = 3;
    constexpr std::uint64_t least_steps = 8;
    constexpr std::uint64_t least_spans = 2;
    constexpr std::uint64_t chunks_of_channel = 2;
    const std::uint64_t step = span != 0 ? span : rules.payload_lanes * lanes_of_element;
    if (step > rules.most_lanes) return rules.most_lanes / lanes_of_element * lanes_of_element;
    const std::uint64_t share = lanes / (chunks_of_channel * rules.channels);
    const std::uint64_t most = rules.most_lanes / step;
    const std::uint64_t least = span != 0 ? least_spans : least_steps;
    return std::clamp(share / step + 1, std::min(least, most), most) * step;
}

}  // namespace atp::tensor
