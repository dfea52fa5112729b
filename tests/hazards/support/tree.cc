// SPDX-License-Identifier: Apache-2.0
#include "support/tree.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "control/branch.h"
#include "endpoint/hosted_server.h"

namespace atp::testing {
namespace {

constexpr unsigned ports_of_a_kind = 1000;

}  // namespace

wire::Address address_of(Node node) {
    static const wire::Address any = *wire::Address::parse("10.0.0.1:1");
    const unsigned kind = static_cast<unsigned>(node.kind) + 1;
    return any.with_port(static_cast<std::uint16_t>(kind * ports_of_a_kind + node.number));
}

Node node_at(const wire::Address& address) {
    const unsigned port = address.port();
    return {static_cast<Node::Kind>(port / ports_of_a_kind - 1), port % ports_of_a_kind};
}

Tree::Tree(const NetworkConfig& config)
    : config_(config),
      membership_(std::make_shared<const protocol::Membership>(config.membership)),
      two_levels_(membership_->units() > 1 || membership_->unit(0).direct) {
    config_.channel.aggregators = config.aggregators;
}

Node Tree::rack_of(Node worker) const {
    return rack_node(membership_->place(static_cast<std::uint16_t>(worker.number)).unit);
}

bool Tree::is_pipeline(Node node) const {
    if (node.kind == Node::Kind::root) return config_.root_aggregates && config_.root_is_pipeline;
    if (node.kind != Node::Kind::rack || membership_->unit(node.number).direct) return false;
    return config_.racks_aggregate && (config_.pipelines >> node.number & 1U) != 0;
}

// The last switch that ranks or switches join.
Node Tree::top() const {
    const Node last = two_levels_ ? root_node : rack_node(0);
    return is_pipeline(last) ? server_node : last;
}

Node Tree::above(Node node) const {
    if (node.kind == Node::Kind::worker) {
        const Node rack = rack_of(node);
        return membership_->unit(rack.number).direct || is_pipeline(rack) ? top() : rack;
    }
    return node.kind == Node::Kind::rack && two_levels_ ? top() : server_node;
}

Node Tree::next(Node at, Node sender, Node receiver) const {
    const bool goes_up = above(sender) == receiver;
    if (!goes_up && above(receiver) != sender) return receiver;
    const Node below = goes_up ? sender : receiver;
    std::vector<Node> path{below};
    if (below.kind == Node::Kind::worker && is_pipeline(rack_of(below))) path.push_back(rack_of(below));
    if (two_levels_ && is_pipeline(root_node) && above(below) == server_node) path.push_back(root_node);
    path.push_back(goes_up ? receiver : sender);
    if (!goes_up) std::ranges::reverse(path);
    return *std::next(std::ranges::find(path, at));
}

host::SwitchHostConfig Tree::config_of_switch(Node node) const {
    const bool aggregates =
        node.kind == Node::Kind::root ? config_.root_aggregates : node == server_node || config_.racks_aggregate;
    host::SwitchHostConfig process{.address = address_of(node), .boot = address_of(node).port()};
    process.shard.table = {.aggregators = aggregates ? config_.aggregators : 0,
                           .lanes = config_.channel.lanes,
                           .jobs = 8,
                           .ageing = config_.ageing};
    if (node.kind == Node::Kind::rack && two_levels_) process.shard.tree.parent = address_of(top());
    return process;
}

endpoint::ChannelMachineConfig Tree::config_of_rank(const protocol::ChannelConfig& channel,
                                                    const std::shared_ptr<const protocol::Membership>& membership,
                                                    unsigned rank, Node entrance) const {
    const auto number = static_cast<std::uint16_t>(rank);
    const protocol::Place place = membership->place(number);
    endpoint::ChannelMachineConfig config;
    config.terms = {.job = channel.job,
                    .token = channel.token,
                    .channel = channel.channel,
                    .lanes = static_cast<std::uint16_t>(channel.lanes),
                    .window_log2 = channel.window_log2,
                    .audit = channel.audit,
                    .aggregators = channel.aggregators,
                    .first_seq = channel.first_seq,
                    .mask1 = membership->all_units(),
                    .scale = config_.scale};
    if (membership == membership_ && !switch_serves()) {
        config.terms.server = control::endpoint_of(address_of(server_node));
    }
    config.unit = {.unit = place.unit,
                   .members = 1U << place.member,
                   .mask0 = place.mask0,
                   .direct = membership->unit(place.unit).direct,
                   .ranks = {number}};
    config.level = two_levels_ && entrance.kind != Node::Kind::rack ? 1 : 0;
    config.switch_address = address_of(entrance);
    config.nonce = 1 + rank;
    config.membership = membership;
    config.worker.channel = endpoint::channel_config(config.terms);
    config.worker.rank = number;
    config.worker.place = place;
    config.worker.senders = protocol::SenderMasks(*membership, number);
    config.worker.scale = config_.scale;
    config.worker.congestion = config_.congestion;
    config.worker.int32_lanes = config_.int32_lanes;
    if (config_.bounded) config.worker.bypass_above = protocol::bounded_magnitude(membership->workers());
    return config;
}

endpoint::ChannelMachineConfig Tree::config_of_server() const {
    endpoint::ChannelMachineConfig config = config_of_rank(config_.channel, membership_, 0, top());
    config.hosts_server = true;
    return config;
}

}  // namespace atp::testing
