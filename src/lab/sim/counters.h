// SPDX-License-Identifier: Apache-2.0
// The counters of the programs by name, so that no sum or report omits a counter.
#pragma once

#include <array>
#include <cstdint>

#include "base/counters.h"
#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/worker.h"
#include "sim/link.h"
#include "switchml/worker.h"

namespace atp::sim {

// Counters of a flow between two hosts.
struct FlowCounters {
    std::uint64_t segments = 0;  // first transmissions
    std::uint64_t resent = 0;
    std::uint64_t timeouts = 0;
    std::uint64_t halvings = 0;         // of the window
    std::uint64_t delivered_bytes = 0;  // complete messages, in order
};

using protocol::ServerCounters;
using protocol::SwitchCounters;
using protocol::WorkerCounters;

using protocol::server_fields;
using protocol::worker_fields;
using SwitchmlCounters = switchml::WorkerCounters;

inline constexpr std::array switchml_fields{
    counter<&SwitchmlCounters::sent>("sent"),
    counter<&SwitchmlCounters::resent>("resent"),
    counter<&SwitchmlCounters::results>("results"),
    counter<&SwitchmlCounters::stale_results>("stale_results"),
    counter<&SwitchmlCounters::overflowed>("overflowed"),
    counter<&SwitchmlCounters::misfit_fragments>("misfit_fragments"),
    counter<&SwitchmlCounters::refused>("refused"),
    counter<&SwitchmlCounters::forged>("forged"),
};
static_assert(names_all(switchml_fields));

inline constexpr std::array flow_fields{
    counter<&FlowCounters::segments>("segments"),
    counter<&FlowCounters::resent>("resent"),
    counter<&FlowCounters::timeouts>("timeouts"),
    counter<&FlowCounters::halvings>("halvings"),
    counter<&FlowCounters::delivered_bytes>("delivered_bytes"),
};
static_assert(names_all(flow_fields));

inline constexpr std::array link_fields{
    counter<&LinkCounters::packets>("packets"),     counter<&LinkCounters::bytes>("bytes"),
    counter<&LinkCounters::dropped>("dropped"),     counter<&LinkCounters::lost>("lost"),
    counter<&LinkCounters::marked>("marked"),       counter<&LinkCounters::duplicated>("duplicated"),
    counter<&LinkCounters::reordered>("reordered"),
};
static_assert(names_all(link_fields));

}  // namespace atp::sim
