// SPDX-License-Identifier: Apache-2.0
#include "sim/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/program.h"
#include "wire/packet.h"

namespace atp::sim {
namespace {

using namespace std::string_view_literals;

constexpr std::uint64_t link_stream = 0x11a1;
constexpr std::size_t kept_max = 256;
constexpr Duration replay_spread = std::chrono::microseconds(500);

// no_node: the job has no such rank.
NodeId host_of(const Site& site, unsigned rank) {
    return rank < site.worker_hosts.size() ? site.worker_hosts[rank] : no_node;
}

double loss_of(const Scenario& scenario, const Fabric& fabric, const FabricLink& ends) {
    if (!scenario.faults.lossy_worker) return scenario.faults.loss;
    const bool lossy = std::ranges::any_of(fabric.sites, [&](const Site& site) {
        const NodeId host = host_of(site, *scenario.faults.lossy_worker);
        return host == ends.from || host == ends.to;
    });
    return lossy ? scenario.faults.loss : 0;
}

LinkConfig config_of(const Scenario& scenario, const Fabric& fabric, const FabricLink& ends) {
    LinkConfig config{.rate_bits_per_s = scenario.rate_bits_per_s,
                      .burst_bytes = scenario.burst_bytes,
                      .delay = scenario.delay,
                      .loss = loss_of(scenario, fabric, ends),
                      .faulty = true,
                      .at_host = ends.kind != FabricLink::Kind::trunk};
    if (ends.kind == FabricLink::Kind::trunk) {
        config.rate_bits_per_s = scenario.uplink_bits_per_s.value_or(scenario.rate_bits_per_s);
        config.paths = scenario.paths;
        config.path_skew = scenario.path_skew;
    }
    if (ends.kind != FabricLink::Kind::from_host) {
        config.queue_bytes = scenario.queue_bytes;
        config.ecn_bytes = scenario.ecn_bytes;
        return config;
    }
    for (const Site& site : fabric.sites) {
        if (scenario.straggler && host_of(site, *scenario.straggler) == ends.from) {
            config.rate_bits_per_s = std::max<std::int64_t>(
                static_cast<std::int64_t>(static_cast<double>(scenario.rate_bits_per_s) / scenario.straggler_factor),
                1000);
        }
    }
    return config;
}

// A control message may name all ranks of a job. The buffers have an odd number of cache lines, so that the first lines
// of many packets do not compete for the same part of a cache.
std::size_t longest_packet(const Scenario& scenario) {
    constexpr std::size_t line_bytes = 64;
    const std::size_t control_bytes = 576 + std::size_t{4} * scenario.workers();
    std::size_t bytes = std::max(control_bytes, ATP_HEADER_BYTES + std::size_t{scenario.lanes} * ATP_LANE_BYTES);
    for (unsigned job = 0; job < scenario.jobs; ++job) {
        if (scenario.system_of(job).kind == System::Kind::switchml) {
            bytes = std::max(bytes, scenario.switchml_config(job).packet_bytes());
        }
    }
    return ((bytes + line_bytes - 1) / line_bytes | 1U) * line_bytes;
}

}  // namespace

Network::Network(const Scenario& scenario, const Fabric& fabric, EventQueue& events, const Programs& programs,
                 Trace* trace)
    : scenario_(scenario),
      fabric_(fabric),
      events_(events),
      programs_(programs),
      trace_(trace),
      harmful_(scenario.faults.replay > 0 || scenario.faults.loss > 0 || scenario.faults.duplicate > 0 ||
               scenario.faults.reorder > 0 || scenario.faults.interfere),
      random_(scenario.seed, link_stream),
      pool_(longest_packet(scenario)),
      paths_each_(scenario.paths),
      paths_(fabric.links.size() * paths_each_) {
    for (const FabricLink& ends : fabric.links) links_.emplace_back(ends, config_of(scenario, fabric, ends));
}

std::string Network::name_of(const Link& link) const {
    return fmt::format("{}>{}", fabric_.nodes[link.ends().from].name, fabric_.nodes[link.ends().to].name);
}

void Network::write_trace(std::string_view where, PacketId packet, std::string_view what, Time now) {
    trace_->packet(now, where, what, programs_[pool_.owner(packet)]->describe(pool_.bytes(packet)));
}

void Network::charge(ProgramId program, const HostCost& cost) {
    if (program >= charges_.size()) charges_.resize(program + 1U);
    charges_[program] = {.packet_ps = cost.per_packet.count() * 1000,
                         .byte_ps = cost.bits_per_s == 0 ? 0 : Link::bits_ps / cost.bits_per_s};
}

Link::Service Network::service_of(const Link& link, PacketId packet) const {
    Link::Service service{.lossless = pool_.lossless(packet)};
    if (!link.config().at_host) return service;
    const Charge& charge = charges_[pool_.owner(packet)];
    const auto bytes = std::int64_t{pool_.wire_size(packet)} + scenario_.overhead_bytes;
    service.least_ps = std::max(charge.packet_ps, bytes * charge.byte_ps);
    return service;
}

void Network::send(LinkId id, PacketId packet, const Onward& onward, Time now) {
    Link& link = links_[id];
    const Link::Departure departure =
        link.enqueue(pool_.wire_size(packet) + scenario_.overhead_bytes, service_of(link, packet), now);
    if (departure.dropped) {
        notify(link, packet, "dropped", now);
        pool_.release(packet);
        return;
    }
    if (link.is_cut()) {
        ++link.counters().lost;
        notify(link, packet, "cut", now);
        pool_.release(packet);
        return;
    }
    notify(link, packet, departure.marked ? "sent marked"sv : "sent"sv, now);
    const Arrival arrival{.time = departure.arrival,
                          .packet = packet,
                          .to = link.ends().to,
                          .congested = onward.congested || departure.marked,
                          .is_report = onward.is_report,
                          .process = onward.process};
    if (harmful_ && link.config().faulty && now >= scenario_.faults.from && now < scenario_.faults.until) {
        harm_and_carry(id, arrival, now);
    } else {
        carry(id, arrival);
    }
}

Disposition Network::disposition_of(const Link& link, PacketId packet, Time now) {
    const Faults& faults = scenario_.faults;
    Disposition disposition;
    if (faults.interfere) {
        wire::Packet decoded;
        if (wire::decode(pool_.bytes(packet), decoded) == wire::DecodeError::none) {
            const auto& nodes = fabric_.nodes;
            disposition = faults.interfere({.from = nodes[link.ends().from].name,
                                            .to = nodes[link.ends().to].name,
                                            .header = decoded.header,
                                            .now = now});
        }
    }
    if (link.config().loss > 0 && random_.chance(link.config().loss)) disposition.lose = true;
    if (faults.duplicate > 0 && random_.chance(faults.duplicate)) disposition.duplicate = true;
    if (faults.reorder > 0 && random_.chance(faults.reorder)) {
        disposition.delay += Duration(
            1 + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(faults.reorder_delay.count()))));
    }
    return disposition;
}

void Network::harm_and_carry(LinkId id, Arrival arrival, Time now) {
    Link& link = links_[id];
    const Disposition disposition = disposition_of(link, arrival.packet, now);
    if (scenario_.faults.replay > 0 && random_.chance(scenario_.faults.replay)) keep(arrival);
    if (disposition.duplicate) {
        ++link.counters().duplicated;
        notify(link, arrival.packet, "duplicated", now);
        Arrival second = arrival;
        const auto spread = static_cast<std::uint64_t>(scenario_.faults.reorder_delay.count());
        second.time += Duration(static_cast<std::int64_t>(random_.below(spread)));
        pool_.retain(second.packet);
        carry_loose(second);
    }
    if (disposition.lose) {
        ++link.counters().lost;
        notify(link, arrival.packet, "lost", now);
        pool_.release(arrival.packet);
        return;
    }
    if (disposition.delay != Duration::zero()) {
        ++link.counters().reordered;
        notify(link, arrival.packet, "held back", now);
        arrival.time += disposition.delay;
        carry_loose(arrival);
        return;
    }
    carry(id, arrival);
}

void Network::carry(LinkId id, Arrival arrival) {
    const LinkConfig& config = links_[id].config();
    std::uint32_t target = id * paths_each_;
    if (config.paths != 1) {
        const auto path = static_cast<unsigned>(random_.below(config.paths));
        target += path;
        arrival.time += path * config.path_skew;
    }
    arrival.order = events_.next_order();
    ArrivalRing& ring = paths_[target];
    if (ring.empty()) {
        events_.push({.time = arrival.time, .order = arrival.order, .kind = Event::Kind::path, .target = target});
    }
    ring.push(arrival);
}

void Network::carry_loose(const Arrival& arrival) {
    if (free_loose_.empty()) {
        free_loose_.push_back(static_cast<std::uint32_t>(loose_.size()));
        loose_.emplace_back();
    }
    const std::uint32_t slot = free_loose_.back();
    free_loose_.pop_back();
    loose_[slot] = arrival;
    events_.push(arrival.time, Event::Kind::loose, slot);
}

void Network::deliver_here(NodeId at, PacketId packet, const Onward& onward, Time now) {
    carry_loose({.time = now,
                 .packet = packet,
                 .to = at,
                 .congested = onward.congested,
                 .is_report = onward.is_report,
                 .process = onward.process});
}

void Network::keep(const Arrival& arrival) {
    pool_.retain(arrival.packet);
    if (kept_.size() < kept_max) {
        kept_.push_back(arrival);
        return;
    }
    Arrival& replaced = kept_[random_.below(kept_max)];
    pool_.release(replaced.packet);
    replaced = arrival;
}

void Network::replay_kept(Time now) {
    for (Arrival& arrival : kept_) {
        arrival.time =
            now + Duration(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(replay_spread.count()))));
        carry_loose(arrival);
    }
    kept_.clear();
}

void Network::drop_kept() {
    for (const Arrival& arrival : kept_) pool_.release(arrival.packet);
    kept_.clear();
}

void Network::defer(const Arrival& arrival, Time when) {
    Arrival later = arrival;
    later.time = when;
    --hops_;  // not processed yet: counted when it is delivered again
    carry_loose(later);
}

Arrival Network::take_arrival(const Event& event) {
    ++hops_;
    if (event.kind == Event::Kind::loose) {
        free_loose_.push_back(event.target);
        const std::uint32_t slot = event.target;
        events_.pop();
        return loose_[slot];
    }
    const std::uint32_t target = event.target;
    ArrivalRing& ring = paths_[target];
    const Arrival arrival = ring.front();
    ring.pop();
    if (ring.empty()) {
        events_.pop();
    } else {
        const Arrival& next = ring.front();
        pool_.prefetch(next.packet);
        events_.replace_top({.time = next.time, .order = next.order, .kind = Event::Kind::path, .target = target});
    }
    return arrival;
}

}  // namespace atp::sim
