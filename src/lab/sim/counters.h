// SPDX-License-Identifier: Apache-2.0
// The counters of the state machines by name, so that no sum or report omits one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/worker.h"
#include "sim/link.h"
#include "switchml/worker.h"

namespace atp::sim {

template <class Counters>
struct CounterField {
    std::string_view name;
    std::uint64_t Counters::*field;
};

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
using SwitchmlCounters = switchml::WorkerCounters;

inline constexpr std::array worker_fields{
    CounterField<WorkerCounters>{"sent", &WorkerCounters::sent},
    CounterField<WorkerCounters>{"resent", &WorkerCounters::resent},
    CounterField<WorkerCounters>{"resent_newer", &WorkerCounters::resent_newer},
    CounterField<WorkerCounters>{"probes", &WorkerCounters::probes},
    CounterField<WorkerCounters>{"acks", &WorkerCounters::acks},
    CounterField<WorkerCounters>{"stale_acks", &WorkerCounters::stale_acks},
    CounterField<WorkerCounters>{"nacks", &WorkerCounters::nacks},
    CounterField<WorkerCounters>{"waits", &WorkerCounters::waits},
    CounterField<WorkerCounters>{"ecn_acks", &WorkerCounters::ecn_acks},
    CounterField<WorkerCounters>{"echoes", &WorkerCounters::echoes},
    CounterField<WorkerCounters>{"halvings", &WorkerCounters::halvings},
    CounterField<WorkerCounters>{"float_fragments", &WorkerCounters::float_fragments},
    CounterField<WorkerCounters>{"remaps", &WorkerCounters::remaps},
    CounterField<WorkerCounters>{"bypassed", &WorkerCounters::bypassed},
    CounterField<WorkerCounters>{"refused", &WorkerCounters::refused},
    CounterField<WorkerCounters>{"forged", &WorkerCounters::forged},
};

inline constexpr std::array server_fields{
    CounterField<ServerCounters>{"gradients", &ServerCounters::gradients},
    CounterField<ServerCounters>{"completed", &ServerCounters::completed},
    CounterField<ServerCounters>{"added_here", &ServerCounters::added_here},
    CounterField<ServerCounters>{"duplicates", &ServerCounters::duplicates},
    CounterField<ServerCounters>{"replaced", &ServerCounters::replaced},
    CounterField<ServerCounters>{"overlapping", &ServerCounters::overlapping},
    CounterField<ServerCounters>{"overflowed", &ServerCounters::overflowed},
    CounterField<ServerCounters>{"float_fragments", &ServerCounters::float_fragments},
    CounterField<ServerCounters>{"collided", &ServerCounters::collided},
    CounterField<ServerCounters>{"remapped", &ServerCounters::remapped},
    CounterField<ServerCounters>{"marked", &ServerCounters::marked},
    CounterField<ServerCounters>{"acks", &ServerCounters::acks},
    CounterField<ServerCounters>{"reacks", &ServerCounters::reacks},
    CounterField<ServerCounters>{"nacks", &ServerCounters::nacks},
    CounterField<ServerCounters>{"waits", &ServerCounters::waits},
    CounterField<ServerCounters>{"flushes", &ServerCounters::flushes},
    CounterField<ServerCounters>{"unsent", &ServerCounters::unsent},
    CounterField<ServerCounters>{"stale", &ServerCounters::stale},
    CounterField<ServerCounters>{"ahead", &ServerCounters::ahead},
    CounterField<ServerCounters>{"mismatched", &ServerCounters::mismatched},
    CounterField<ServerCounters>{"audit_failures", &ServerCounters::audit_failures},
    CounterField<ServerCounters>{"refused", &ServerCounters::refused},
    CounterField<ServerCounters>{"forged", &ServerCounters::forged},
};

inline constexpr std::array switchml_fields{
    CounterField<SwitchmlCounters>{"sent", &SwitchmlCounters::sent},
    CounterField<SwitchmlCounters>{"resent", &SwitchmlCounters::resent},
    CounterField<SwitchmlCounters>{"results", &SwitchmlCounters::results},
    CounterField<SwitchmlCounters>{"stale_results", &SwitchmlCounters::stale_results},
    CounterField<SwitchmlCounters>{"overflowed", &SwitchmlCounters::overflowed},
    CounterField<SwitchmlCounters>{"misfit_fragments", &SwitchmlCounters::misfit_fragments},
    CounterField<SwitchmlCounters>{"refused", &SwitchmlCounters::refused},
    CounterField<SwitchmlCounters>{"forged", &SwitchmlCounters::forged},
};

inline constexpr std::array flow_fields{
    CounterField<FlowCounters>{"segments", &FlowCounters::segments},
    CounterField<FlowCounters>{"resent", &FlowCounters::resent},
    CounterField<FlowCounters>{"timeouts", &FlowCounters::timeouts},
    CounterField<FlowCounters>{"halvings", &FlowCounters::halvings},
    CounterField<FlowCounters>{"delivered_bytes", &FlowCounters::delivered_bytes},
};

inline constexpr std::array link_fields{
    CounterField<LinkCounters>{"packets", &LinkCounters::packets},
    CounterField<LinkCounters>{"bytes", &LinkCounters::bytes},
    CounterField<LinkCounters>{"dropped", &LinkCounters::dropped},
    CounterField<LinkCounters>{"lost", &LinkCounters::lost},
    CounterField<LinkCounters>{"marked", &LinkCounters::marked},
    CounterField<LinkCounters>{"duplicated", &LinkCounters::duplicated},
    CounterField<LinkCounters>{"reordered", &LinkCounters::reordered},
};

// Counter structs contain nothing but counters: these assertions fail if a field has no name.
static_assert(sizeof(WorkerCounters) == worker_fields.size() * sizeof(std::uint64_t));
static_assert(sizeof(ServerCounters) == server_fields.size() * sizeof(std::uint64_t));
static_assert(sizeof(SwitchmlCounters) == switchml_fields.size() * sizeof(std::uint64_t));
static_assert(sizeof(FlowCounters) == flow_fields.size() * sizeof(std::uint64_t));
static_assert(sizeof(LinkCounters) == link_fields.size() * sizeof(std::uint64_t));

template <class Counters, std::size_t N>
void add_counters(const std::array<CounterField<Counters>, N>& fields, const Counters& addend, Counters& sum) {
    for (const auto& entry : fields) sum.*entry.field += addend.*entry.field;
}

}  // namespace atp::sim
