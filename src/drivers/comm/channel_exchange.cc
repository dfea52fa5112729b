// SPDX-License-Identifier: Apache-2.0
#include "comm/channel_exchange.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "net/clock.h"

namespace atp::comm {

// A caller that has seen the error of one channel finds all others closed, although their threads end them later.
std::optional<Error> ChannelExchange::submit(const WorkPart& part) {
    const std::scoped_lock lock(mutex_);
    if (error_ || abort_) return error_ ? error_ : abort_;
    submitted_.push_back(part);
    return std::nullopt;
}

void ChannelExchange::abort(const Error& reason) {
    const std::scoped_lock lock(mutex_);
    if (!abort_) abort_ = reason;
}

bool ChannelExchange::wait_ready(Time deadline) {
    std::unique_lock lock(mutex_);
    for (Time now = net::now(); !ready_ && !error_ && now < deadline; now = net::now()) {
        changed_.wait_for(lock, std::min<Duration>(deadline - now, net::longest_sleep));
    }
    return ready_ && !error_;
}

std::optional<Error> ChannelExchange::error() const {
    const std::scoped_lock lock(mutex_);
    return error_;
}

std::string ChannelExchange::waiting() const {
    const std::scoped_lock lock(mutex_);
    return waiting_;
}

ChannelCounters ChannelExchange::counters() const {
    const std::scoped_lock lock(mutex_);
    return counters_;
}

std::vector<std::string> ChannelExchange::missing_features() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> missing = report_.missing();
    if (!group_failure_.empty()) missing.push_back("multicast: " + group_failure_);
    return missing;
}

std::optional<Error> ChannelExchange::take(std::deque<WorkPart>& parts) {
    const std::scoped_lock lock(mutex_);
    std::ranges::move(submitted_, std::back_inserter(parts));
    submitted_.clear();
    return error_ ? std::nullopt : abort_;
}

void ChannelExchange::set_ready() {
    const std::scoped_lock lock(mutex_);
    ready_ = true;
    changed_.notify_all();
}

void ChannelExchange::set_waiting(std::string text) {
    const std::scoped_lock lock(mutex_);
    waiting_ = std::move(text);
}

void ChannelExchange::set_group_failure(std::string text) {
    const std::scoped_lock lock(mutex_);
    group_failure_ = std::move(text);
}

void ChannelExchange::close(const Error& error, std::deque<WorkPart>& parts) {
    const std::scoped_lock lock(mutex_);
    std::ranges::move(submitted_, std::back_inserter(parts));
    submitted_.clear();
    if (!error_) error_ = error;
    changed_.notify_all();
}

void ChannelExchange::publish(const ChannelCounters& counters, const net::UdpReport& report) {
    const std::scoped_lock lock(mutex_);
    counters_ = counters;
    // Copying texts allocates memory: copy them only if they changed.
    if (report_.revision() != report.revision()) report_ = report;
}

}  // namespace atp::comm
