// SPDX-License-Identifier: Apache-2.0
// What a worker does about fragments whose result does not come (docs/spec/worker.md#overtaken-fragments): newer ACKs
// that overtake them, losses that show congestion, and the timer.
#include <algorithm>
#include <utility>

#include "protocol/worker.h"

namespace atp::protocol {
inline namespace ATP_VARIANT {
namespace {

constexpr std::uint32_t max_doublings = 16;  // the timeout reaches max_timeout before

}  // namespace

void Worker::recover_overtaken() {
    while (const auto overtaken = losses_.poll()) {
        const std::uint32_t seq = overtaken->seq;
        if (!in_flight(seq) || delivery_of(seq).is_owned()) continue;
        const bool resent = slot(seq).resent || slot(seq).resend_queued;
        switch (overtaken->what) {
            case LossDetector::What::resend: ask_for_overtaken(seq); break;
            case LossDetector::What::wait:
                if (resent) break;
                note_loss();
                queue_probe(seq);
                wait_for_answer(seq, Wait::again);
                break;
            case LossDetector::What::first:
                if (!resent) wait_for_answer(seq, Wait::first);
                break;
        }
    }
}

// Half a window longer than a round trip: until then, the server may have asked the worker whose gradient it misses. A
// worker that may start no further fragment waits for less.
void Worker::wait_for_answer(std::uint32_t seq, Wait wait) {
    constexpr auto proof = static_cast<std::uint32_t>(LossDetector::proof);
    std::uint32_t until = next_seq_ + congestion_.window_packets() / 2;
    for (const std::uint32_t end : {expected_ + config_.channel.window(), operations_.end_seq()}) {
        if (before(end - proof, until)) until = end - proof;
    }
    if (wait == Wait::first || !losses_.has_overtaken(until)) losses_.note_wait(seq, until);
}

void Worker::ask_for_overtaken(std::uint32_t seq) {
    if (slot(seq).sends_no_lanes) {
        queue_probe(seq);
    } else {
        ++counters_.resent_newer;
        queue_resend(seq);
    }
    note_loss();
}

// Links lose single packets without being full. A full queue drops many of one window.
void Worker::note_loss() {
    if (!before(expected_, losses_until_)) {
        losses_until_ = next_seq_;
        losses_noted_ = 0;
    }
    if (++losses_noted_ >= congestion_.losses_of_a_full_queue()) congested_once();
}

void Worker::congested_once() {
    const bool halved_already = before(expected_, recovery_until_) && !ATP_BREAK(halves_each_mark);
    if (halved_already || congestion_.is_fixed()) return;
    recovery_until_ = next_seq_;
    ++counters_.halvings;
    congestion_.on_congestion();
}

void Worker::queue_resend(std::uint32_t seq) {
    Slot& lost = slot(seq);
    if (lost.resend_queued) return;
    lost.resend_queued = resends_.push(QueuedFragment{seq});
}

void Worker::queue_probe(std::uint32_t seq) {
    Slot& missing = slot(seq);
    if (missing.probe_queued) return;
    missing.probe_queued = probes_.push(QueuedFragment{seq});
}

// The server answered without a result: fragments in flight wait for a slow worker, or for the timer of a worker that
// lost a packet. Their round trips are excluded, and the minimum that such round trips raised is reset. Otherwise, the
// timers of workers would raise each other up to max_timeout.
void Worker::exclude_waiting_fragments() {
    late_from_ = next_seq_;
    round_trip_.reset_minimum();
}

// Workers that lost the same fragments must not send PROBEs in step: together they may overflow a queue that drops the
// same PROBEs each time. Each repeated timeout is longer by a share of up to 1/2 that differs between workers.
Duration Worker::timeout_jitter(Duration timeout) const {
    if (backoff_ == 0) return Duration::zero();
    const std::uint32_t share = mix(mix(mix(config_.channel.job + config_.rank) + expected_) + backoff_);
    return Duration((timeout.count() / 2 * (share >> 16U)) >> 16U);
}

void Worker::arm(Time now) {
    const Duration least = round_trip_.timeout(config_.min_timeout, config_.max_timeout);
    const Duration timeout = std::min(least * (1U << std::min(backoff_, max_doublings)), config_.max_timeout);
    timer_ = unacked_ == 0 ? never : now + timeout + timeout_jitter(timeout);
}

Time Worker::poll_timeout() const { return failed_ || idle() ? never : std::min(timer_, operations_.deadline()); }

void Worker::handle_timeout(Time now) {
    if (failed_ || idle()) return;
    if (now >= operations_.deadline()) return fail(now);
    if (now < timer_) return;
    if (!ATP_BREAK(no_probe)) ask_for_oldest();
    ready_.repeat(expected_);
    // Fragments in flight may wait for another worker's timer. Measuring them would make timers raise each other.
    measured_from_ = next_seq_;
    round_trip_.forget_late();
    ++backoff_;
    arm(now);
}

void Worker::ask_for_oldest() {
    std::uint32_t left = config_.probe_burst;
    for (std::uint32_t seq = expected_; seq != next_seq_ && left != 0; ++seq) {
        if (!in_flight(seq) || (ATP_BREAK(overtaken_unasked) && losses_.has_overtaken(seq))) continue;
        --left;
        queue_probe(seq);
        slot(seq).probed = true;
    }
}

}  // namespace ATP_VARIANT
}  // namespace atp::protocol
