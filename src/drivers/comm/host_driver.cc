// SPDX-License-Identifier: Apache-2.0
#include "comm/host_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/older_symbols.h"
#include "comm/host_text.h"
#include "endpoint/channel_text.h"
#include "net/clock.h"

namespace atp::comm {
namespace {

using Kind = protocol::HostAction::Kind;

// A work of at most this size is done by its caller.
constexpr std::uint64_t small_lanes = 16384;
constexpr Duration longest_spin = std::chrono::microseconds(20);
constexpr int pauses_per_look = 16;
constexpr Duration grace = std::chrono::milliseconds(300);
constexpr Time at_once{};  // not even a sleep

void pause_core() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

std::shared_ptr<HostDriver> HostDriver::start(HostPlan plan) {
    std::shared_ptr<HostDriver> driver(new HostDriver(std::move(plan)));
    if (driver->link_) driver->link_->watch(*driver->memory_);
    driver->thread_ = std::thread([raw = driver.get()] { raw->run(); });
    return driver;
}

HostDriver::HostDriver(HostPlan plan)
    : memory_(std::move(plan.memory)),
      link_(std::move(plan.link)),
      spins_(plan.spins),
      on_end_(std::move(plan.ended)),
      network_(std::move(plan.network)),
      rules_({.ranks = std::move(plan.ranks),
              .rank = memory_->rank(),
              .chunk_lanes = memory_->shape().chunk_lanes,
              .scale = plan.scale}),
      places_(memory_->shape().slots),
      group_({.ranks = memory_->shape().ranks,
              .slots = memory_->shape().slots,
              .other_hosts = network_.has_value(),
              .speaks = network_ && memory_->rank() == 0}) {
    if (network_) rules_.network = network_->chunks;
    for (unsigned slot = 0; slot < places_.size(); ++slot) {
        places_[slot].sums = memory_->sums_of(slot);
        places_[slot].magnitudes = memory_->magnitudes_of(slot);
        for (unsigned rank = 0; rank < ranks(); ++rank) {
            places_[slot].ranks.push_back(memory_->lanes_of(slot, rank));
            places_[slot].votes.push_back(memory_->votes_of(slot, rank));
        }
    }
}

HostDriver::~HostDriver() { stop(); }

// ------------------------------------------------------------------------------------------------------- From callers

void HostDriver::submit(const Handle& work, std::uint64_t alignment) {
    const bool small = work->slices().front().size() <= small_lanes;
    std::optional<Error> error;
    {
        const std::scoped_lock lock(mutex_);
        error = error_ ? error_ : abort_;
        if (!error) submissions_.push_back({work, alignment});
        if (!error && (++open_works_ > 1 || !small)) thread_needed_ = true;
    }
    if (error) return work->finish_part(endpoint::error_after_end(*error, work->operation()));
    work->set_attendant(weak_from_this());
    if (!small) return call_thread();
    // The thread that waits for the work drives it. Until then, this thread does what needs no other rank.
    if (!try_begin_drive()) {
        thread_needed_ = true;
        return wake();
    }
    drive(at_once, [&] { return work->done(); });
    end_drive();
}

void HostDriver::wake() { memory_->notify(sleeps_at_); }

void HostDriver::call_thread() {
    thread_needed_ = true;
    {
        const std::scoped_lock lock(mutex_);
        thread_called_ = true;
    }
    called_.notify_one();
    wake();
}

void HostDriver::continue_on_thread() { call_thread(); }

void HostDriver::attend(Work& work, Time until) {
    while (!work.done()) {
        if (!try_begin_drive()) {
            // The thread that drives sees this when it ends, or has ended by the second try.
            thread_needed_ = true;
            if (!try_begin_drive()) return;
        }
        drive(until, [&] { return work.done() || (until != never && net::now() >= until); });
        end_drive();
        if (until != never && net::now() >= until) return;
    }
}

void HostDriver::abort(const Error& reason) {
    {
        const std::scoped_lock lock(mutex_);
        if (!abort_) abort_ = reason;
    }
    call_thread();
}

void HostDriver::stop() {
    stopping_ = true;
    call_thread();
    if (thread_.joinable()) thread_.join();
    while (!try_begin_drive()) std::this_thread::yield();
    if (memory_->presence_of(memory_->rank()) == shm::Presence::here) {
        if (open_works_ != 0) {
            // errors.md, runs, closed: your program destroyed the group or communicator
            fail({.operation = Operation::wait, .reason = Reason::closed, .text = "the communicator was closed"});
        }
        memory_->set_presence(memory_->rank(), shm::Presence::left);
    }
    driving_ = false;
    if (link_) link_->stop();
}

// ----------------------------------------------------------------------------------- On the thread that drives

void HostDriver::run() {
    const auto idle = [this] { return stopping_ || open_works_ == 0; };
    while (true) {
        {
            std::unique_lock lock(mutex_);
            called_.wait(lock, [this] { return thread_called_ || stopping_; });
            thread_called_ = false;
            if (stopping_) return;
        }
        // Otherwise, the thread that drives calls this one at its end.
        if (!try_begin_drive()) continue;
        thread_needed_ = false;
        take_submissions();
        drive(never, idle);
        end_drive();
    }
}

void HostDriver::end_drive() {
    driving_ = false;
    if (open_works_ == 0 || !thread_needed_) return;
    {
        const std::scoped_lock lock(mutex_);
        thread_called_ = true;
    }
    called_.notify_one();
}

template <class Stop>
void HostDriver::drive(Time until, const Stop& stop) {
    while (!failed_) {
        if (group_.begins_pass()) {
            // Within a pass, the other ranks may need the next step.
            if (stop()) return;
            // Later changes of this slot end the sleep, and wake() changes it too.
            sleeps_at_ = group_.wait_slot();
            seen_ = memory_->state_of(group_.wait_slot());
            take_submissions();
            if (failed_ || stop()) return;
        }
        const protocol::HostAction action = group_.poll_action(*memory_, next_ready());
        if (action.kind == Kind::wait) {
            if (until == at_once) return;
            wait(action, until);
            continue;
        }
        if (!perform(action)) return;
    }
}

void HostDriver::take_submissions() {
    std::deque<Submission> taken;
    std::optional<Error> abort;
    {
        const std::scoped_lock lock(mutex_);
        taken.swap(submissions_);
        abort.swap(abort_);
    }
    for (const Submission& submission : taken) {
        Part part{submission.work, {submission.work->slices().front(), submission.alignment, rules_}};
        part.chunks.submit(group_);
        parts_.push_back(std::move(part));
    }
    if (abort) fail(*abort);
}

bool HostDriver::next_ready() {
    const std::uint64_t chunk = group_.next_load();
    if (chunk == group_.submitted()) return false;
    return part_of(chunk).chunks.ready(chunk);
}

// False: the group has ended.
bool HostDriver::perform(const protocol::HostAction& action) {
    switch (action.kind) {
        case Kind::none:
        case Kind::wait: break;
        case Kind::load: {
            const Part& part = part_of(action.chunk);
            count_copy(part.chunks.load(action.chunk, places_[action.slot]));
            memory_->state_call(action.slot, part.chunks.purpose(), part.work->called());
            break;
        }
        case Kind::add: part_of(action.chunk).chunks.add(action.chunk, action.range, places_[action.slot]); break;
        case Kind::store: count_copy(part_of(action.chunk).chunks.store(action.chunk, places_[action.slot])); break;
        case Kind::send: send(action); break;
        case Kind::notify: notify(action.slot); break;
        case Kind::mismatch: fail(error_of_mismatch(*memory_, rules_.ranks, action)); return false;
        case Kind::lost:
            // The others name the same rank, not this one, which only fails because of it.
            memory_->blame(action.rank);
            fail(error_of_lost(*memory_, rules_.ranks, action.rank));
            return false;
    }
    finish_stored();
    return true;
}

void HostDriver::wait(const protocol::HostAction& action, Time until) {
    const Time now = net::now();
    // The channels know better which of the other hosts is late.
    const Duration spare = network_ ? grace : Duration::zero();
    const Time deadline = parts_.empty() ? never : net::after(parts_.front().work->deadline(), spare);
    if (now >= deadline) return fail(error_of_silence(*memory_, rules_.ranks, action.chunk));
    if (spins_ && spin_.looks()) {
        const bool found = look_for_change(action.slot, now + longest_spin);
        spin_.note(found);
        if (found) return;
    }
    memory_->sleep(action.slot, seen_, std::min(until, deadline));
}

bool HostDriver::look_for_change(unsigned slot, Time until) const {
    do {
        for (int i = 0; i < pauses_per_look; ++i) pause_core();
        if (memory_->state_of(slot) != seen_) return true;
    } while (net::now() < until);
    return false;
}

HostDriver::Part& HostDriver::part_of(std::uint64_t chunk) {
    const auto first_chunk = [](const Part& part) { return part.chunks.first_chunk(); };
    const auto after = std::ranges::upper_bound(parts_, chunk, {}, first_chunk);
    return *(after - 1);
}

// A chunk is a work of its own for the network.
void HostDriver::send(const protocol::HostAction& action) {
    const Part& part = part_of(action.chunk);
    auto keeps = std::make_shared<std::pair<Handle, std::shared_ptr<HostDriver>>>(part.work, shared_from_this());
    auto sums = part.chunks.sums_of(action.chunk, places_[action.slot], std::move(keeps));
    const std::uint64_t lanes = sums->size();
    const std::uint16_t purpose = sums->purpose();
    const auto work =
        std::make_shared<Work>(part.work->operation(), std::move(sums), part.work->begun(), part.work->deadline());
    work->add_slice(0, lanes, purpose);
    work->set_called(part.work->called());
    work->on_done([this, raw = work.get(), slot = action.slot, chunk = action.chunk] {
        if (const auto outcome = raw->outcome(); !outcome) return abort(outcome.error());
        memory_->complete(slot, chunk);
        notify(slot);
    });
    network_->send(work, action.chunk);
}

void HostDriver::notify(unsigned slot) {
    memory_->notify(slot);
    if (network_ && slot != memory_->shape().slots) memory_->notify(memory_->shape().slots);
}

// The group counts a chunk as stored one step after the copy.
void HostDriver::finish_stored() {
    while (!parts_.empty() && parts_.front().chunks.end_chunk() <= group_.next_store()) {
        const Handle work = std::move(parts_.front().work);
        parts_.pop_front();
        --open_works_;
        work->finish_part(std::nullopt);
    }
}

// -------------------------------------------------------------------------------------------------------------- Errors

// Ends the group for good. The tensors are not accessed any more.
void HostDriver::fail(const Error& error) {
    failed_ = true;
    std::deque<Handle> works;
    for (Part& part : parts_) works.push_back(std::move(part.work));
    parts_.clear();
    bool first = false;
    {
        const std::scoped_lock lock(mutex_);
        for (Submission& submission : submissions_) works.push_back(std::move(submission.work));
        submissions_.clear();
        first = !error_;
        if (first) error_ = error;
        open_works_ = 0;
    }
    if (first) {
        memory_->blame(memory_->rank());
        memory_->set_presence(memory_->rank(), shm::Presence::ended, note_of(error));
        if (on_end_) on_end_(error);
    }
    const Time now = net::now();
    for (const Handle& work : works) {
        work->finish_part(endpoint::error_of_part(error, work->operation(), now - work->begun()));
    }
}

}  // namespace atp::comm
