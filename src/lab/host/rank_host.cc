// SPDX-License-Identifier: Apache-2.0
#include "host/rank_host.h"

#include <limits>
#include <utility>

namespace atp::host {

bool RankHost::submit(protocol::Tensor& borrowed, Time now, Time deadline) {
    if (!machine_.submit(borrowed, now, deadline)) return false;
    submitted_.push_back({&borrowed, nullptr});
    return true;
}

bool RankHost::submit(std::unique_ptr<protocol::Tensor> owned, Time now, Time deadline) {
    if (!submit(*owned, now, deadline)) return false;
    submitted_.back().owned = std::move(owned);
    return true;
}

void RankHost::transmit(wire::Outbox& out, Time now) {
    machine_.transmit_control(out);
    static_cast<void>(machine_.transmit(out, std::numeric_limits<unsigned>::max(), now));
}

std::optional<endpoint::ChannelEvent> RankHost::poll_event(Time now) {
    kept_.reset();
    auto event = machine_.poll_event(now);
    if (event && event->kind == endpoint::ChannelEvent::Kind::completed) {
        completed_ = submitted_.front().tensor;
        kept_ = std::move(submitted_.front().owned);
        submitted_.pop_front();
    }
    return event;
}

}  // namespace atp::host
