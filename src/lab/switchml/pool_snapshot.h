// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "switchml/switch.h"

namespace atp::switchml {

// Counters of one channel that uses SwitchML.
struct StreamSnapshot {
    std::uint32_t job = 0;
    std::uint16_t channel = 0;
    std::uint8_t number = 0;  // job number in its packets
    std::uint32_t slots = 0;
    SwitchCounters packets;
};

struct PoolSnapshot {
    std::uint32_t slots = 0;
    std::uint32_t free_slots = 0;
    SwitchCounters packets;
    std::uint64_t strangers = 0;  // dropped packets whose source address differs from that of the worker that they name
    std::vector<StreamSnapshot> streams;
};

}  // namespace atp::switchml
