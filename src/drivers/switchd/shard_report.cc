// SPDX-License-Identifier: Apache-2.0
// Report of a shard, for readers on other threads.
#include <bit>
#include <utility>

#include "switchd/shard_driver.h"

namespace atp::switchd {

void ShardDriver::publish() {
    client::ShardReport snapshot;
    snapshot.address = to_string(socket_->local());
    snapshot.aggregators = switch_.config().aggregators;
    snapshot.packets = switch_.counters();
    snapshot.shard = counters_;
    snapshot.tree = tree_.counters();
    snapshot.udp = socket_->counters();
    snapshot.features = socket_->report();
    if (other_ != nullptr) client::add_parts(other_->report_parts(), snapshot.parts);
    client::add_parts(socket_->report_parts(), snapshot.parts);
    switch_.for_each_job([&](std::uint32_t job, const protocol::SwitchCounters& counters) {
        snapshot.jobs.push_back({.job = job, .counters = counters});
    });
    tree_.for_each([&](const control::Branch& branch) {
        client::ChannelReport channel{.job = branch.terms.job,
                                      .channel = branch.terms.channel,
                                      .protocol = std::string(wire::to_string(branch.terms.protocol)),
                                      .level = branch.level,
                                      .ready = branch.ready(),
                                      .present = static_cast<std::uint32_t>(std::popcount(branch.present)),
                                      .expected = static_cast<std::uint32_t>(std::popcount(branch.mask)),
                                      .hosts = branch.hosts && branch.terms.protocol == wire::ChannelProtocol::atp,
                                      .by_group = branch.by_group && socket_->reaches_groups()};
        if (branch.group.family() != wire::Family::none) channel.group = to_string(branch.group);
        if (const auto host = servers_.find(&branch); host != servers_.end()) {
            channel.server = host->second->server.counters();
        }
        snapshot.channels.push_back(std::move(channel));
    });
    const std::scoped_lock lock(mutex_);
    snapshot.shard.control_lost = queued_messages_lost_;
    published_ = std::move(snapshot);
}

client::ShardReport ShardDriver::snapshot() const {
    const std::scoped_lock lock(mutex_);
    return published_;
}

}  // namespace atp::switchd
