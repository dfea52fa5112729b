// SPDX-License-Identifier: Apache-2.0
#include "host_queue.h"

#include <cstring>
#include <utility>

#include "staging/element.h"

namespace atp::testing {
namespace {

using staging::Elements;

constexpr std::size_t lane_bytes = sizeof(std::uint32_t);

template <class Format, class Convert>
void write_lanes(const Elements& from, std::byte* lanes, const Convert& convert) {
    const auto* elements = static_cast<const typename Format::Element*>(from.data);
    for (std::size_t at = 0; at < from.count; ++at) {
        const std::uint32_t lane = convert(elements[at]);
        std::memcpy(lanes + at * lane_bytes, &lane, sizeof lane);
    }
}

}  // namespace

HostQueue::HostQueue(bool held) {
    if (held) loads_.allowed = 0;
    for (Line* line : {&loads_, &stores_}) line->thread = std::thread([this, line] { run(*line); });
}

HostQueue::~HostQueue() {
    {
        const std::scoped_lock lock(mutex_);
        ending_ = true;
        loads_.allowed.reset();
        changed_.notify_all();
    }
    for (Line* line : {&loads_, &stores_}) line->thread.join();
}

Result<void> HostQueue::load_after(void* /*event*/) { return {}; }

void HostQueue::load_integers(const Elements& from, float scale, std::byte* lanes, Done done) {
    const auto load = [=] {
        staging::with_format(from.type, [&]<class Format>(Format) {
            write_lanes<Format>(from, lanes, [scale](auto each) { return staging::integer_lane<Format>(each, scale); });
        });
    };
    add(loads_, load, std::move(done));
}

void HostQueue::store(const std::byte* lanes, double factor, const Elements& to, Done done) {
    const auto store = [=] {
        staging::with_format(to.type, [&]<class Format>(Format) {
            auto* elements = static_cast<typename Format::Element*>(to.data);
            for (std::size_t at = 0; at < to.count; ++at) {
                std::uint32_t lane;
                std::memcpy(&lane, lanes + at * lane_bytes, sizeof lane);
                elements[at] = staging::element_of<Format>(lane, factor);
            }
        });
    };
    add(stores_, store, std::move(done));
}

Result<void> HostQueue::fetch_floats(const Elements& from, std::byte* lanes) {
    {
        const std::scoped_lock lock(mutex_);
        ++fetches_;
        if (auto fine = condition(); !fine) return fine;
    }
    staging::with_format(from.type, [&]<class Format>(Format) {
        write_lanes<Format>(from, lanes, [](auto each) { return staging::float_lane<Format>(each); });
    });
    return {};
}

void HostQueue::allow(std::size_t loads) {
    const std::scoped_lock lock(mutex_);
    loads_.allowed = loads_.done + loads;
    changed_.notify_all();
}

void HostQueue::release() {
    const std::scoped_lock lock(mutex_);
    loads_.allowed.reset();
    changed_.notify_all();
}

void HostQueue::break_down() {
    const std::scoped_lock lock(mutex_);
    broken_ = true;
}

std::size_t HostQueue::loads() const {
    const std::scoped_lock lock(mutex_);
    return loads_.done;
}

std::size_t HostQueue::stores() const {
    const std::scoped_lock lock(mutex_);
    return stores_.done;
}

std::size_t HostQueue::fetches() const {
    const std::scoped_lock lock(mutex_);
    return fetches_;
}

Result<void> HostQueue::condition() const {
    if (!broken_) return {};
    return fail(Operation::wait, Reason::failed, "the device", "the test broke the device");
}

void HostQueue::add(Line& line, std::function<void()> work, Done done) {
    const std::scoped_lock lock(mutex_);
    line.steps.push_back({std::move(work), std::move(done)});
    changed_.notify_all();
}

void HostQueue::run(Line& line) {
    std::unique_lock lock(mutex_);
    for (;;) {
        const auto may_go_on = [&] { return !line.steps.empty() && (!line.allowed || line.done < *line.allowed); };
        changed_.wait(lock, [&] { return may_go_on() || (ending_ && line.steps.empty()); });
        if (line.steps.empty()) return;
        const Step step = std::move(line.steps.front());
        line.steps.pop_front();
        const auto fine = condition();
        lock.unlock();
        if (fine) step.work();
        lock.lock();
        ++line.done;
        lock.unlock();
        step.done(fine);
        lock.lock();
    }
}

}  // namespace atp::testing
