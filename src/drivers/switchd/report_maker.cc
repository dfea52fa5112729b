// SPDX-License-Identifier: Apache-2.0
#include "switchd/report_maker.h"

#include <utility>

#include "base/older_symbols.h"

namespace atp::switchd {

ReportMaker::ReportMaker(endpoint::NodeMachine& machine, ShardDriver& shard, net::EventLoop& loop, Make make)
    : machine_(machine), shard_(shard), loop_(loop), make_(std::move(make)) {
    loop_.add(*this);
}

ReportMaker::~ReportMaker() { loop_.remove(*this); }

// What the other shards published is at most 100 ms old.
void ReportMaker::take() {
    shard_.publish();
    {
        const std::scoped_lock lock(mutex_);
        asked_ = machine_.counters().hellos;
    }
    changed_.notify_one();
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void ReportMaker::handle_timeout(Time now) {
    if (machine_.handle_timeout(now).kind == endpoint::NodeTask::Kind::take_report) take();
}

void ReportMaker::handle_wake(Time now) {
    std::optional<std::string> made;
    {
        const std::scoped_lock lock(mutex_);
        made = std::exchange(made_, std::nullopt);
    }
    if (made) machine_.handle_report(*std::move(made), shard_.outbox(), now);
}

void ReportMaker::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return asked_.has_value(); })) {
        const std::uint64_t hellos = *std::exchange(asked_, std::nullopt);
        lock.unlock();
        std::string text = make_(hellos);
        lock.lock();
        made_ = std::move(text);
        loop_.wake();
    }
}

}  // namespace atp::switchd
