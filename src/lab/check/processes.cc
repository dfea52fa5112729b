// SPDX-License-Identifier: Apache-2.0
#include "check/processes.h"

#include <algorithm>

#include "check/pipeline_switch.h"
#include "control/branch.h"
#include "wire/packet.h"
#include "wire/trace.h"

namespace atp::check::ATP_VARIANT {
namespace {

// Longer than any configuration of joining lasts.
constexpr Duration no_timeout = std::chrono::hours(1);

}  // namespace

Processes::Processes(const Configuration& configuration, const Incarnation& incarnation)
    : configuration_(configuration),
      layout_(configuration_),
      membership_(std::make_shared<const protocol::Membership>(layout_.membership())),
      indices_(configuration_.base_slots),
      truth_(configuration_, *membership_),
      incarnation_(incarnation) {}

endpoint::ChannelMachineConfig Processes::config_of_rank(unsigned job, unsigned rank) const {
    const protocol::ChannelConfig channel = channel_of(configuration_, job, incarnation_.earlier);
    const protocol::Place& place = membership_->place(static_cast<std::uint16_t>(rank));
    const unsigned entrance = layout_.above(layout_.worker(job, rank));
    endpoint::ChannelMachineConfig config;
    config.terms = {.job = channel.job,
                    .token = channel.token,
                    .channel = channel.channel,
                    .lanes = channel.lanes,
                    .window_log2 = channel.window_log2,
                    .audit = channel.audit,
                    .aggregators = channel.aggregators,
                    .first_seq = incarnation_.first_seq,
                    .mask1 = membership_->all_units(),
                    .scale = 1};
    if (layout_.has_server_processes())
        config.terms.server = control::endpoint_of(layout_.address_of(layout_.server(job)));
    if (configuration_.names_root) config.terms.root = control::endpoint_of(layout_.address_of(layout_.top()));
    config.unit = {.unit = place.unit,
                   .members = 1U << place.member,
                   .mask0 = place.mask0,
                   .direct = membership_->unit(place.unit).direct,
                   .ranks = {static_cast<std::uint16_t>(rank)}};
    config.level = layout_.node(entrance).level;
    config.switch_address = layout_.address_of(entrance);
    config.nonce = 100 + layout_.worker(job, rank);
    config.membership = membership_;
    protocol::WorkerConfig& worker = config.worker;
    worker.channel = endpoint::channel_config(config.terms, &indices_);
    worker.rank = static_cast<std::uint16_t>(rank);
    worker.place = place;
    worker.senders = protocol::SenderMasks(*membership_, worker.rank);
    worker.scale = config.terms.scale;
    if (configuration_.bounded) worker.bypass_above = protocol::bounded_magnitude(membership_->workers());
    worker.min_timeout = worker.max_timeout = configuration_.has_clock() ? no_timeout : model_timeout;
    worker.probe_burst = configuration_.window();
    worker.tensors = static_cast<std::uint32_t>(std::max<std::size_t>(configuration_.tensors.size(), 1));
    return config;
}

host::SwitchHostConfig Processes::config_of_switch(unsigned node, unsigned boots) const {
    host::SwitchHostConfig config;
    config.address = layout_.address_of(node);
    config.boot = 1000 + 16 * boots + node;
    config.shard.indices = &indices_;
    config.shard.table = {.aggregators = configuration_.aggregators,
                          .lanes = configuration_.lanes(),
                          .jobs = configuration_.jobs,
                          .ageing = model_ageing};
    if (node != layout_.top() && !configuration_.names_root) {
        config.shard.tree.parent = layout_.address_of(layout_.above(node));
    }
    config.shard.tree.asks_path = configuration_.asks_path;
    if (configuration_.has_clock()) config.shard.tree.hold = configuration_.hold_ticks * model_tick;
    return config;
}

wire::Datagram Processes::datagram_of(const Flight& flight, Input input) {
    std::ranges::copy(flight.bytes, buffer_.begin());
    return {.bytes = std::span(buffer_).first(flight.bytes.size()),
            .capacity = buffer_.size(),
            .from = &layout_.address_of(flight.from),
            .ecn = input == Input::packet_marked ? wire::Ecn::congested : wire::Ecn::capable_0};
}

Sent Processes::sent_from(unsigned from, const host::PacketList::ListedPacket& packet) const {
    const unsigned to = layout_.node_at(packet.to);
    const Flight flight{.kind = Flight::Kind::datagram,
                        .from = static_cast<std::uint8_t>(from),
                        .to = static_cast<std::uint8_t>(to),
                        .bytes = packet.bytes};
    return flight.sent_to(layout_.next(from, from, to));
}

std::string Processes::describe(std::span<const std::byte> packet) const {
    const Flight flight = Flight::of(packet);
    switch (flight.kind) {
        case Flight::Kind::start: return "start";
        case Flight::Kind::leave: return "leave";
        case Flight::Kind::batch_ends: return "a batch ends";
        case Flight::Kind::unreachable: return "report that no process has the port of " + name(flight.from);
        case Flight::Kind::datagram: break;
    }
    std::uint8_t kind = 0;
    const std::span<const std::byte> plain = packet_between_passes(flight.bytes, kind);
    Bytes copy(plain.begin(), plain.end());
    std::string text = kind == 0 ? "" : "pass " + std::to_string(kind) + " of ";
    text += wire::describe_datagram(copy) + " from " + name(flight.from);
    wire::Packet decoded;
    if (wire::decode(copy, decoded) != wire::DecodeError::none) return text;
    for (std::size_t lane = 0; lane < decoded.lane_count(); ++lane) {
        text += (lane == 0 ? " lanes=" : ",") + std::to_string(wire::load_u32(decoded.lanes.data() + 4 * lane));
    }
    return text;
}

}  // namespace atp::check::ATP_VARIANT
