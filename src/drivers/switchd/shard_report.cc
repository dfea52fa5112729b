// SPDX-License-Identifier: Apache-2.0
// Report of a shard, for readers on other threads.
#include <bit>
#include <utility>

#include "switchd/shard_driver.h"

namespace atp::switchd {

void ShardDriver::publish() {
    client::ShardReport snapshot;
    snapshot.address = to_string(socket_->local());
    snapshot.aggregators = machine_.table().config().aggregators;
    snapshot.packets = machine_.table().counters();
    snapshot.shard = {.unrouted = machine_.counters().unrouted + machine_.ack_counters().unsent,
                      .grouped = machine_.counters().grouped,
                      .gathered_acks = machine_.ack_counters().acks,
                      .ack_lists = machine_.ack_counters().lists,
                      .control_refused = machine_.counters().control_refused,
                      .control_lost = machine_.counters().events_lost + machine_.limit().dropped() + mailbox_.lost() +
                                      control_.lost(),
                      .control_retries = machine_.gatekeeper().retries(),
                      .control_strangers = machine_.gatekeeper().strangers()};
    snapshot.tree = machine_.tree().counters();
    snapshot.udp = socket_->counters();
    snapshot.features = socket_->report();
    client::add_parts(socket_->report_parts(), snapshot.parts);
    machine_.table().for_each_job([&](std::uint32_t job, const protocol::SwitchCounters& counters) {
        snapshot.jobs.push_back({.job = job, .counters = counters});
    });
    snapshot.slices = client::slices_in(
        machine_.slices(), [this](const control::JobKey& job) { return machine_.table().held_by(job.job, job.token); });
    machine_.tree().for_each([&](const control::Branch& branch) {
        client::ChannelReport channel{.job = branch.terms.job,
                                      .channel = branch.terms.channel,
                                      .level = branch.level,
                                      .ready = branch.ready(),
                                      .present = static_cast<std::uint32_t>(std::popcount(branch.present)),
                                      .expected = static_cast<std::uint32_t>(std::popcount(branch.mask)),
                                      .hosts = branch.hosts,
                                      .by_group = branch.by_group && machine_.reaches_groups()};
        if (const wire::Pace pace = branch.pace_of_all(); pace.share_percent != 0) {
            channel.slowest = {.rank = branch.rank_of(pace),
                               .unit = pace.unit,
                               .share_percent = pace.share_percent,
                               .last_percent = pace.last_percent,
                               .waited_permille = pace.waited_permille};
        }
        channel.job_name = branch.job_name;
        channel.tenant = branch.owner.tenant;
        if (branch.has_memory) channel.server_bytes = control::server_bytes_of(branch.terms);
        if (const protocol::Server* const server = machine_.server_of(branch)) channel.server = server->counters();
        snapshot.channels.push_back(std::move(channel));
    });
    const std::scoped_lock lock(mutex_);
    published_ = std::move(snapshot);
}

client::ShardReport ShardDriver::snapshot() const {
    const std::scoped_lock lock(mutex_);
    return published_;
}

}  // namespace atp::switchd
