// SPDX-License-Identifier: Apache-2.0
#include "comm/channel_set.h"

#include <utility>

namespace atp::comm {

Result<void> ChannelSet::open(std::span<std::unique_ptr<net::Transport>> transports,
                              std::span<const ChannelPlan> plans) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
        while (threads_.size() <= plans[i].thread) {
            auto thread = ChannelThread::open(plans[i].loop);
            if (!thread) return tl::unexpected(thread.error());
            threads_.push_back(*std::move(thread));
        }
        auto channel = ChannelDriver::open(std::move(transports[i]), plans[i], threads_[plans[i].thread]);
        if (!channel) return tl::unexpected(channel.error());
        channels_.push_back(*std::move(channel));
    }
    return {};
}

void ChannelSet::start() {
    for (const auto& thread : std::exchange(threads_, {})) thread->start();
}

void ChannelSet::submit(const Handle& work) {
    for (std::size_t part = 0; part < work->slices().size(); ++part) {
        channels_[next_]->submit(work, part);
        next_ = (next_ + 1) % channels_.size();
    }
    // Once for all parts: a channel then sends small ones together.
    const std::size_t used = std::min(work->slices().size(), channels_.size());
    for (std::size_t i = 1; i <= used; ++i) channels_[(next_ + channels_.size() - i) % channels_.size()]->wake();
}

void ChannelSet::add_barrier(const Handle& barrier) {
    channels_[next_]->submit(barrier, 0);
    channels_[next_]->wake();
}

void ChannelSet::wake() {
    for (const auto& channel : channels_) channel->wake();
}

void ChannelSet::abort(const Error& reason) {
    for (const auto& channel : channels_) channel->abort(reason);
}

void ChannelSet::stop() {
    for (const auto& channel : channels_) channel->stop();
}

}  // namespace atp::comm
