// SPDX-License-Identifier: Apache-2.0
// Errors of ranks that share memory. `ranks`: the numbers of the host's ranks in the job.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "protocol/host_group.h"
#include "shm/host_memory.h"

namespace atp::comm {

using RankNumbers = std::span<const std::uint16_t>;

// What a rank leaves in the memory when it ends, and what the others read there.
[[nodiscard]] std::string note_of(const Error& error);
[[nodiscard]] Error error_of_lost(const shm::HostMemory& memory, RankNumbers ranks, unsigned lost);
[[nodiscard]] Error error_of_mismatch(const shm::HostMemory& memory, RankNumbers ranks,
                                      const protocol::HostAction& action);
// A deadline passed. Nothing arrived from some ranks, or from the other hosts.
[[nodiscard]] Error error_of_silence(const shm::HostMemory& memory, RankNumbers ranks, std::uint64_t chunk);

}  // namespace atp::comm
