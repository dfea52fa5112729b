// SPDX-License-Identifier: Apache-2.0
#include "comm/channel_thread.h"

#include <utility>

namespace atp::comm {

Result<std::shared_ptr<ChannelThread>> ChannelThread::open(const net::LoopConfig& config) {
    auto loop = net::EventLoop::open(config);
    if (!loop) return tl::unexpected(loop.error());
    return std::shared_ptr<ChannelThread>(new ChannelThread(*std::move(loop)));
}

ChannelThread::~ChannelThread() {
    if (!thread_.joinable()) return;
    loop_->stop();
    thread_.join();
}

void ChannelThread::join(ThreadedChannel& channel) {
    channels_.push_back(&channel);
    loop_->add(channel);
}

void ChannelThread::leave(ThreadedChannel& channel) {
    loop_->remove(channel);
    std::erase(channels_, &channel);
    if (channels_.empty()) loop_->stop();
}

void ChannelThread::start() {
    thread_ = std::thread([this] {
        const auto ran = loop_->run();
        if (ran) return;
        for (ThreadedChannel* const channel : std::exchange(channels_, {})) channel->handle_loop_failure(ran.error());
    });
}

}  // namespace atp::comm
