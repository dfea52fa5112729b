// SPDX-License-Identifier: Apache-2.0
// Report of a shard, for readers on other threads.
#include <bit>
#include <utility>

#include "switchd/shard_driver.h"

namespace atp::switchd {

void SwitchShard::publish() {
    ShardSnapshot snapshot;
    snapshot.address = socket_->local();
    snapshot.aggregators = switch_.config().aggregators;
    snapshot.packets = switch_.counters();
    snapshot.shard = counters_;
    snapshot.tree = tree_.counters();
    snapshot.udp = socket_->counters();
    snapshot.features = socket_->report();
    if (other_ != nullptr) snapshot.parts.push_back(other_->report_parts());
    if (auto parts = socket_->report_parts(); !parts.empty()) snapshot.parts.push_back(std::move(parts));
    switch_.for_each_job([&](std::uint32_t job, const protocol::SwitchCounters& counters) {
        snapshot.jobs.push_back({.job = job, .counters = counters});
    });
    tree_.for_each([&](const control::Branch& branch) {
        ChannelSnapshot channel{.job = branch.terms.job,
                                .channel = branch.terms.channel,
                                .level = branch.level,
                                .protocol = branch.terms.protocol,
                                .ready = branch.ready(),
                                .hosts = branch.hosts && branch.terms.protocol == wire::ChannelProtocol::atp,
                                .group = branch.group,
                                .by_group = branch.by_group && socket_->reaches_groups(),
                                .present = static_cast<std::uint32_t>(std::popcount(branch.present)),
                                .expected = static_cast<std::uint32_t>(std::popcount(branch.mask)),
                                .server = {}};
        if (const auto host = servers_.find(&branch); host != servers_.end()) {
            channel.server = host->second->server.counters();
        }
        snapshot.channels.push_back(channel);
    });
    const std::scoped_lock lock(mutex_);
    snapshot.shard.letters_lost = letters_lost_;
    published_ = std::move(snapshot);
}

ShardSnapshot SwitchShard::snapshot() const {
    const std::scoped_lock lock(mutex_);
    return published_;
}

}  // namespace atp::switchd
