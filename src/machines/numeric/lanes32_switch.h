// SPDX-License-Identifier: Apache-2.0
// Arithmetic of a switch on int32 lanes: saturating sums.
// The rules for buffers, threads and rounding are those of lanes32_worker.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atp::numeric {

// First contribution: copies the lanes of the packet to the aggregator.
void lanes_store(const std::byte* wire, std::size_t count, std::int32_t* lanes);

// Further contribution: adds the lanes of the packet. A sum beyond 32 bits saturates; returns true if any lane of
// this call did. The caller keeps the result as a sticky flag. Once it is set the lanes are invalid, even if later
// contributions bring them back into range.
[[nodiscard]] bool lanes_add(const std::byte* wire, std::size_t count, std::int32_t* lanes);

// Last contribution: as lanes_add(), and writes the sums to the packet.
[[nodiscard]] bool lanes_add_emit(std::byte* wire, std::size_t count, std::int32_t* lanes);

// Copies the lanes of the aggregator to a packet.
void lanes_emit(const std::int32_t* lanes, std::size_t count, std::byte* wire);

}  // namespace atp::numeric
