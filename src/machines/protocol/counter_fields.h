// SPDX-License-Identifier: Apache-2.0
// The counters of the machines by name.
#pragma once

#include <array>

#include "base/counters.h"
#include "protocol/decide.h"
#include "protocol/server.h"
#include "protocol/switch.h"
#include "protocol/variant.h"
#include "protocol/worker.h"
#include "wire/packet.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {

inline constexpr std::array worker_fields{
    counter<&WorkerCounters::sent>("sent"),
    counter<&WorkerCounters::resent>("resent"),
    counter<&WorkerCounters::resent_newer>("resent_newer"),
    counter<&WorkerCounters::probes>("probes"),
    counter<&WorkerCounters::readies>("readies"),
    counter<&WorkerCounters::acks>("acks"),
    counter<&WorkerCounters::stale_acks>("stale_acks"),
    counter<&WorkerCounters::nacks>("nacks"),
    counter<&WorkerCounters::waits>("waits"),
    counter<&WorkerCounters::ecn_acks>("ecn_acks"),
    counter<&WorkerCounters::echoes>("echoes"),
    counter<&WorkerCounters::halvings>("halvings"),
    counter<&WorkerCounters::float_fragments>("float_fragments"),
    counter<&WorkerCounters::remaps>("remaps"),
    counter<&WorkerCounters::bypassed>("bypassed"),
    counter<&WorkerCounters::refused>("refused"),
    counter<&WorkerCounters::forged>("forged"),
};
static_assert(names_all(worker_fields));

inline constexpr std::array server_fields{
    counter<&ServerCounters::completed>("completed"),
    counter<&ServerCounters::added_here>("added_here"),
    counter<&ServerCounters::gradients>("gradients"),
    counter<&ServerCounters::duplicates>("duplicates"),
    counter<&ServerCounters::replaced>("replaced"),
    counter<&ServerCounters::overlapping>("overlapping"),
    counter<&ServerCounters::overflowed>("overflowed"),
    counter<&ServerCounters::float_fragments>("float_fragments"),
    counter<&ServerCounters::collided>("collided"),
    counter<&ServerCounters::remapped>("remapped"),
    counter<&ServerCounters::marked>("marked"),
    counter<&ServerCounters::acks>("acks"),
    counter<&ServerCounters::reacks>("reacks"),
    counter<&ServerCounters::nacks>("nacks"),
    counter<&ServerCounters::waits>("waits"),
    counter<&ServerCounters::flushes>("flushes"),
    counter<&ServerCounters::stale>("stale"),
    counter<&ServerCounters::ahead>("ahead"),
    counter<&ServerCounters::forged>("forged"),
    counter<&ServerCounters::refused>("refused"),
    counter<&ServerCounters::mismatched>("mismatched"),
    counter<&ServerCounters::audit_failures>("audit_failures"),
    counter<&ServerCounters::readies>("readies"),
    counter<&ServerCounters::unsent>("unsent"),
    counter<&ServerCounters::packets>("received_packets"),
    counter<&ServerCounters::bytes>("received_bytes"),
};
static_assert(names_all(server_fields));

// Counters of packets by outcome, under the names that operators see. `refused` is an array by reason:
// wire::to_string().
inline constexpr std::array switch_fields{
    counter<&SwitchCounters::events, ATP_EVENT_CLAIMED>("claimed"),
    counter<&SwitchCounters::events, ATP_EVENT_ADDED>("added"),
    counter<&SwitchCounters::events, ATP_EVENT_COMPLETED>("completed"),
    counter<&SwitchCounters::events, ATP_EVENT_SINGLE>("single"),
    counter<&SwitchCounters::events, ATP_EVENT_COLLIDED>("collisions"),
    counter<&SwitchCounters::events, ATP_EVENT_BYPASSED>("bypassed"),
    counter<&SwitchCounters::events, ATP_EVENT_LATE>("late"),
    counter<&SwitchCounters::events, ATP_EVENT_DUPLICATE>("duplicates"),
    counter<&SwitchCounters::events, ATP_EVENT_REEMITTED>("reemitted"),
    counter<&SwitchCounters::events, ATP_EVENT_RESENT>("resends"),
    counter<&SwitchCounters::events, ATP_EVENT_FETCHED>("fetched"),
    counter<&SwitchCounters::events, ATP_EVENT_RELEASED>("released"),
    counter<&SwitchCounters::events, ATP_EVENT_EXPIRED>("expired"),
    counter<&SwitchCounters::events, ATP_EVENT_TAKEN_OVER>("taken_over"),
    counter<&SwitchCounters::events, ATP_EVENT_SUPERSEDED>("superseded"),
    counter<&SwitchCounters::events, ATP_EVENT_FLUSHED>("flushes"),
    counter<&SwitchCounters::events, ATP_EVENT_CLOSED>("closed"),
    counter<&SwitchCounters::events, ATP_EVENT_MISFIT>("misfits"),
    counter<&SwitchCounters::events, ATP_EVENT_PASSED>("passed"),
    counter<&SwitchCounters::ecn>("ecn"),
    counter<&SwitchCounters::overflows>("overflows"),
    counter<&SwitchCounters::no_room>("no_room"),
    counter<&SwitchCounters::forged>("forged"),
};
static_assert(names_all(switch_fields, wire::decode_error_count));

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
