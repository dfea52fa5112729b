// SPDX-License-Identifier: Apache-2.0
// Effects of control messages on a shard: its branches of the tree, and their servers.
#include <fmt/format.h>

#include <utility>
#include <variant>

#include "net/local_route.h"
#include "switchd/shard_driver.h"
#include "wire/control.h"

namespace atp::switchd {

void ShardDriver::handle_control(std::span<const std::byte> bytes, const wire::Address& from, Time now) {
    const auto type = wire::control_type(bytes);
    bool understood = false;
    if (type == wire::ControlType::join) {
        const auto join = wire::decode_join(bytes);
        if ((understood = join.has_value())) tree_.handle_join(*join, from, now);
    } else if (type == wire::ControlType::leave) {
        const auto leave = wire::decode_leave(bytes);
        if ((understood = leave.has_value())) tree_.handle_leave(*leave, from, now);
    } else if (type == wire::ControlType::joined) {
        const auto joined = wire::decode_joined(bytes);
        if ((understood = joined.has_value())) tree_.handle_joined(*joined, from, now);
    } else if (type == wire::ControlType::refused) {
        const auto refused = wire::decode_refused(bytes);
        if ((understood = refused.has_value())) tree_.handle_refused(*refused, from);
    }
    if (!understood) ++counters_.control_refused;
    changed_ = true;
    drain_tree(now);
}

void ShardDriver::drain_tree(Time) {
    while (const auto event = tree_.poll_event()) handle_event(*event);
    while (auto transmit = tree_.poll_transmit()) {
        if (transmit->to.is_multicast()) find_group(transmit->to, transmit->near);
        const std::span<std::byte> room = socket_->reserve(ATP_MAX_PACKET_BYTES);
        if (room.empty()) {
            flush();
            continue;  // this message is lost; members repeat control messages
        }
        const std::size_t size =
            std::visit([&](const auto& message) { return wire::encode(message, room); }, transmit->message);
        if (size != 0) socket_->commit(size, transmit->to, wire::Ecn::capable_0);
    }
}

// The routes to members and to their group are equal, and may change while a job runs.
void ShardDriver::find_group(const wire::Address& group, const wire::Address& near) {
    if (const auto from = net::local_address_towards(near)) socket_->reach_group(group, *from);
}

void ShardDriver::handle_event(const control::TreeEvent& event) {
    const bool is_atp = event.protocol == wire::ChannelProtocol::atp;
    switch (event.kind) {
        case control::TreeEvent::Kind::admitted:
            if (is_atp) static_cast<void>(switch_.admit(event.job, event.token, event.level));
            break;
        case control::TreeEvent::Kind::opened:
            if (const control::Branch* branch = tree_.find(event.job, event.channel)) {
                is_atp ? open_server(*branch) : open_other(*branch);
            }
            break;
        case control::TreeEvent::Kind::closed: close_channel(event); break;
    }
}

void ShardDriver::open_server(const control::Branch& branch) {
    if (auto host = endpoint::host_server(branch)) {
        servers_[&branch] = std::move(host);
        tree_.opened(branch.terms.job, branch.terms.channel);
        return;
    }
    tree_.could_not_open(
        branch.terms.job, branch.terms.channel,
        fmt::format("no memory for another parameter server of {} MB: use a smaller window or fewer lanes",
                    control::server_bytes_of(branch.terms) >> 20U));
}

void ShardDriver::open_other(const control::Branch& branch) {
    auto stream = other_->open(branch);
    if (stream) {
        tree_.opened(branch.terms.job, branch.terms.channel, *stream);
    } else {
        tree_.could_not_open(branch.terms.job, branch.terms.channel, std::move(stream.error()));
    }
}

void ShardDriver::close_channel(const control::TreeEvent& event) {
    if (event.last_of_job) switch_.dismiss(event.job);
    if (other_ != nullptr) other_->close(event.job, event.channel);
    std::erase_if(servers_, [&](const auto& entry) {
        const protocol::ChannelConfig& channel = entry.second->server.config().channel;
        return channel.job == event.job && channel.channel == event.channel;
    });
    busy_servers_.clear();
    busy_branches_.clear();
    for (const auto& [branch, host] : servers_) {
        host->queued = host->server.has_transmit();
        if (!host->queued) continue;
        busy_servers_.push_back(host.get());
        busy_branches_.push_back(branch);
    }
}

}  // namespace atp::switchd
