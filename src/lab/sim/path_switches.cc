// SPDX-License-Identifier: Apache-2.0
#include "sim/path_switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "protocol/switch_event.h"
#include "wire/bytes.h"
#include "wire/control.h"
#include "wire/message_code.h"

namespace atp::sim {

PathSwitches::PathSwitches(const Shared& shared) : shared_(shared) {
    for (NodeId node = 0; node < shared.fabric.switches; ++node) {
        if (const auto level = shared.fabric.path_level(node, shared.scenario)) {
            switches_[node].config = {.table = table_of(shared.scenario), .level = *level};
        }
    }
}

bool PathSwitches::pass(Arrival& arrival, const wire::Address& from, const wire::Address& to, Time now) {
    using host::PathHost;
    PathSwitch& own = switches_.at(arrival.to);
    if (!own.host && own.starts_at <= now) own.host.emplace(own.config);
    if (arrival.is_report || !own.host) return true;
    if (now >= own.polls_at) {
        own.host->poll(now);
        own.polls_at = now + std::chrono::seconds(1);
    }
    note_arrived(arrival);
    PacketPool& pool = shared_.network.pool();
    arrival.packet = pool.exclusive(arrival.packet);
    protocol::PacketBuffer packet{.data = pool.data(arrival.packet),
                                  .size = pool.size(arrival.packet),
                                  .capacity = static_cast<std::uint32_t>(pool.capacity()),
                                  .congested = arrival.congested,
                                  .verdict = {}};
    const PathHost::Passage passage = own.host->handle_packet(packet, from, to, now);
    pool.resize(arrival.packet, packet.size);
    const bool drops = passage == PathHost::Passage::dropped;
    shared_.network.notify(arrival.to, protocol::trace_event(packet.verdict.event, drops), arrival.packet, now);
    if (passage == PathHost::Passage::back) {
        const ProcessId asked = std::exchange(arrival.process, pool.sender(arrival.packet));
        pool.set_sender(arrival.packet, asked);
    }
    if (drops) pool.release(arrival.packet);
    return !drops;
}

std::vector<wire::Address> PathSwitches::copies_of(const Arrival& arrival, const wire::Address& to, Time now) {
    PathSwitch& own = switches_.at(arrival.to);
    if (arrival.is_report || !own.host) return {};
    return own.host->copies_of(shared_.network.pool().bytes(arrival.packet), to, now);
}

// Gradients and JOINs pay for copies.
void PathSwitches::note_arrived(const Arrival& arrival) {
    const std::span<std::byte> bytes = shared_.network.pool().bytes(arrival.packet);
    std::optional<std::uint32_t> job;
    if (wire::control_type(bytes)) {
        const auto join = wire::decode<wire::Join>(bytes);
        if (join) job = join->terms.job;
    } else if (bytes.size() > ATP_HEADER_BYTES && wire::load_u8(bytes.data() + ATP_OFFSET_TYPE) == ATP_TYPE_GRADIENT) {
        job = wire::load_u32(bytes.data() + ATP_OFFSET_JOB);
    }
    if (job) ledgers_[{arrival.to, *job}].arrived_bytes += bytes.size();
}

std::optional<std::string> PathSwitches::objection_to(const std::vector<wire::Address>& copies, const Arrival& arrival,
                                                      const wire::Address& to) {
    if (copies.empty()) return std::nullopt;
    if (std::ranges::find(copies, to) != copies.end())
        return fmt::format("switch {} copied a result to the member that it was sent to", arrival.to);
    const std::span<std::byte> bytes = shared_.network.pool().bytes(arrival.packet);
    const auto joined = wire::decode<wire::Joined>(bytes);
    const std::uint32_t job = joined ? joined->job : wire::load_u32(bytes.data() + ATP_OFFSET_JOB);
    Ledger& ledger = ledgers_[{arrival.to, job}];
    ledger.copied_bytes += copies.size() * bytes.size();
    if (ledger.copied_bytes <= ledger.arrived_bytes) return std::nullopt;
    return fmt::format("switch {} sent {} bytes of copies to job {}, from which {} bytes came", arrival.to,
                       ledger.copied_bytes, job, ledger.arrived_bytes);
}

void PathSwitches::mark_join(Arrival& arrival) const {
    PacketPool& pool = shared_.network.pool();
    if (!wire::decode<wire::Join>(pool.bytes(arrival.packet))) return;
    arrival.packet = pool.exclusive(arrival.packet);
    // In place: a code at the end of the JOIN holds for every other byte.
    wire::store_u8(pool.bytes(arrival.packet).data() + wire::int32_path_at, 1);
}

void PathSwitches::crash(NodeId at, Time starts_again) {
    const auto found = switches_.find(at);
    if (found == switches_.end() || !found->second.host) return;
    PathSwitch& own = found->second;
    add_to(own.host->table().counters(), own.past);
    own.host.reset();
    own.starts_at = starts_again;
}

const protocol::Switch* PathSwitches::table_at(NodeId at) const {
    const auto found = switches_.find(at);
    return found == switches_.end() || !found->second.host ? nullptr : &found->second.host->table();
}

SwitchCounters PathSwitches::counters_at(NodeId at) const {
    const auto found = switches_.find(at);
    if (found == switches_.end()) return {};
    SwitchCounters sum = found->second.past;
    if (found->second.host) add_to(found->second.host->table().counters(), sum);
    return sum;
}

std::uint64_t PathSwitches::added_for(std::uint32_t job) const {
    std::uint64_t added = 0;
    for (const auto& [node, own] : switches_) {
        if (!own.host) continue;
        own.host->table().for_each_job([&](std::uint32_t each, const SwitchCounters& packets) {
            if (each == job) added += added_of(packets);
        });
    }
    return added;
}

}  // namespace atp::sim
