// SPDX-License-Identifier: Apache-2.0
// The path of a job's packets: through the shipped switches along the job's tree, to its state machines.
#include <bit>

#include "endpoint/routing.h"
#include "sim/rank_program.h"
#include "wire/packet.h"
#include "wire/trace.h"

namespace atp::sim {
namespace {

// Links of one switch that lead to workers of a job, for endpoint::for_each_receiver().
class SiteReceivers {
  public:
    SiteReceivers(const Site& site, NodeId at, Network& network) : site_(site), at_(at), network_(network) {}

    template <class Visit>
    void visit_worker(std::uint16_t rank, Visit&& visit) const {
        const std::vector<LinkId>& links = site_.to_worker[at_];
        if (rank < links.size() && links[rank] != no_link) visit(links[rank]);
    }
    // Visits each link that leads to one of the units once, whichever members the packet names.
    template <class Visit>
    void visit_units(std::uint32_t units, std::uint32_t /*members*/, Visit&& visit) const {
        const std::uint64_t copy = network_.new_copy();
        for (; units != 0; units &= units - 1) {
            const auto unit = static_cast<unsigned>(std::countr_zero(units));
            if (unit >= site_.to_unit[at_].size()) break;
            for (const LinkId link : site_.to_unit[at_][unit]) {
                if (network_.first_of_copy(link, copy)) visit(link);
            }
        }
    }
    [[nodiscard]] bool is_switch(LinkId link) const { return !network_.leads_to_host(link); }
    [[nodiscard]] bool is_worker(LinkId link, std::uint16_t rank) const {
        const std::vector<LinkId>& links = site_.to_worker[at_];
        return !is_switch(link) && rank < links.size() && links[rank] == link;
    }

  private:
    const Site& site_;
    NodeId at_;
    Network& network_;
};

}  // namespace

std::string AtpJob::describe(std::span<std::byte> bytes) const { return wire::describe_datagram(bytes); }

void AtpJob::receive(const Arrival& arrival, Time now) {
    const std::span<const std::byte> bytes = shared_.network.pool().bytes(arrival.packet);
    const unsigned channel = wire::load_u16(bytes.data() + ATP_OFFSET_CHANNEL);
    const std::int32_t rank = rank_at_[arrival.to];
    if (endpoint::goes_up(bytes)) {
        if (site().server_host == arrival.to) deliver_to_server(channel, arrival, now);
    } else if (rank >= 0) {
        deliver_to_worker(channel, static_cast<unsigned>(rank), arrival, now);
    }
}

void AtpJob::forward(const Arrival& arrival, Time now) {
    PacketPool& pool = shared_.network.pool();
    const NodeId at = arrival.to;
    if (site().levels[at] < 0) {
        route(arrival.packet, arrival.congested, at, endpoint::goes_up(pool.bytes(arrival.packet)), now);
        return;
    }
    const PacketId packet = pool.exclusive(arrival.packet);
    protocol::PacketBuffer packet_buffer{.data = pool.data(packet),
                                         .size = pool.size(packet),
                                         .capacity = static_cast<std::uint32_t>(pool.capacity()),
                                         .congested = arrival.congested,
                                         .verdict = {}};
    shared_.switches[at].handle_packet(packet_buffer, now);
    pool.resize(packet, packet_buffer.size);
    const protocol::Verdict& verdict = packet_buffer.verdict;
    shared_.network.notify(at, trace_event(verdict.event, verdict.route == protocol::Route::drop), packet, now);
    if (verdict.route == protocol::Route::drop) {
        pool.release(packet);
        return;
    }
    if (verdict.route == protocol::Route::down && gather(packet, packet_buffer, at, now)) return;
    // The congestion mark stays on the packet. It shows the receiving worker that the worker's downlink is congested
    // (H32, docs/protocol.md#h32).
    route(packet, arrival.congested, at, verdict.route == protocol::Route::up, now);
}

// The decision to bypass switches is a function of the fragment, so it is equal for all packets of the fragment. With
// the next hop, they look as if the first switch had passed them, and the server fetches nothing from it.
void AtpJob::bypass_forced(std::byte* packet) const {
    const double share = shared_.scenario.forward_share;
    if (share == 0 || wire::load_u8(packet + ATP_OFFSET_TYPE) != ATP_TYPE_GRADIENT) return;
    const std::uint64_t channel = wire::load_u16(packet + ATP_OFFSET_CHANNEL);
    const std::uint64_t fragment = channel << 32U | wire::load_u32(packet + ATP_OFFSET_SEQ);
    if (share_of_one(mix64(mix64(shared_.scenario.seed, number()), fragment)) >= share) return;
    const std::uint16_t flags = wire::load_u16(packet + ATP_OFFSET_FLAGS);
    wire::store_u16(packet + ATP_OFFSET_FLAGS, static_cast<std::uint16_t>(flags | ATP_FLAG_BYPASS));
    wire::store_u8(packet + ATP_OFFSET_HOP, static_cast<std::uint8_t>(wire::load_u8(packet + ATP_OFFSET_HOP) + 1));
}

void AtpJob::route(PacketId packet, bool congested, NodeId at, bool up, Time now) {
    if (up) {
        shared_.network.send(site().up[at], packet, congested, now);
    } else {
        route_down(packet, congested, at, now);
    }
}

// Sends to one worker, or one copy over each link towards a destination unit. A FLUSH goes to switches only.
void AtpJob::route_down(PacketId packet, bool congested, NodeId at, Time now) {
    Network& network = shared_.network;
    const endpoint::Downward down = endpoint::downward_of(network.pool().bytes(packet));
    endpoint::for_each_receiver(down, SiteReceivers(site(), at, network), [&](LinkId link) {
        network.pool().retain(packet);
        network.send(link, packet, congested, now);
    });
    network.pool().release(packet);
}

std::uint64_t AtpJob::added_in_network() const {
    std::uint64_t added = 0;
    for (const protocol::Switch& at : shared_.switches) {
        const SwitchCounters* counters = at.job_counters(number(), token_);
        if (counters != nullptr) added += counters->events[ATP_EVENT_ADDED] + counters->events[ATP_EVENT_COMPLETED];
    }
    return added;
}

// ------------------------------------------------------------------------------------------------------ Lists of ACKs

void AtpJob::make_lists() {
    for (NodeId at = 0; at < lists_.size(); ++at) lists_[at] = AckLists::make(shared_.fabric, site(), at);
}

void AtpJob::open_lists() {
    std::vector<protocol::ChannelConfig> configs;
    for (unsigned channel = 0; channel < channels_.size(); ++channel) configs.push_back(channel_config(channel));
    for (const auto& lists : lists_) {
        if (lists != nullptr) lists->open(configs);
    }
}

void AtpJob::crash_switch(NodeId at) {
    if (lists_[at] != nullptr) lists_[at]->clear();
}

void AtpJob::add_list_counters(JobReport& report) const {
    for (const auto& lists : lists_) {
        if (lists == nullptr) continue;
        report.gathered_acks += lists->counters().acks;
        report.ack_lists += lists->counters().lists;
    }
}

// True: the packet waits in a list now. If the lists are due earlier than before, an event for that time is scheduled;
// the event for the later time then does nothing.
bool AtpJob::gather(PacketId packet, const protocol::PacketBuffer& handled, NodeId at, Time now) {
    AckLists* const lists = lists_[at].get();
    if (lists == nullptr) return false;
    const Time waited_until = lists->poll_timeout();
    const bool waits = lists->take(handled, shared_.switches[at], now);
    if (waits) {
        shared_.network.notify(at, "gathered", packet, now);
        shared_.network.pool().release(packet);
    }
    if (lists->is_full()) {
        send_lists(at, now);
    } else if (lists->poll_timeout() < waited_until) {
        wake_system_at(lists->poll_timeout(), lists_event(at));
    }
    return waits;
}

void AtpJob::on_lists_due(NodeId at, Time now) {
    if (lists_[at]->poll_timeout() <= now) send_lists(at, now);
}

void AtpJob::send_lists(NodeId at, Time now) {
    const auto expects_more = [this](unsigned channel) {
        const auto& server = channels_[channel].server;
        return server && server->expects_more();
    };
    lists_[at]->send(shared_.network, id_, expects_more, now);
    if (lists_[at]->poll_timeout() != never) wake_system_at(lists_[at]->poll_timeout(), lists_event(at));
}

}  // namespace atp::sim
