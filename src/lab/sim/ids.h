// SPDX-License-Identifier: Apache-2.0
// Identifiers in a simulated network: indexes into the vectors of nodes, links, packets, programs and processes.
#pragma once

#include <cstdint>

namespace atp::sim {

using NodeId = std::uint32_t;
using LinkId = std::uint32_t;
using PacketId = std::uint32_t;
using ProgramId = std::uint16_t;
using ProcessId = std::uint32_t;

inline constexpr NodeId no_node = ~0U;
inline constexpr LinkId no_link = ~0U;
inline constexpr ProcessId no_process = ~0U;

}  // namespace atp::sim
