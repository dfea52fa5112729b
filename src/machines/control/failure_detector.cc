// SPDX-License-Identifier: Apache-2.0
#include "control/failure_detector.h"

#include <algorithm>

#include "control/timing.h"

namespace atp::control {

void FailureDetector::handle_received(Time now) {
    received_at_ = now;
    silent_since_ = peer_ == Peer::refreshes ? now : never;
    refused_since_ = never;
}

void FailureDetector::handle_asked(Time now) {
    ++questions_;
    if (peer_ == Peer::answers) silent_since_ = std::min(silent_since_, now);
}

bool FailureDetector::handle_refused(Time now) {
    refused_at_ = now;
    if (refused_since_ != never) return false;
    refused_since_ = now;
    questions_ = 0;
    return true;
}

void FailureDetector::handle_own_pause(Duration pause) {
    if (silent_since_ != never) silent_since_ += pause;
    if (refused_since_ != never) refused_since_ += pause;
}

// A late report answers a packet that was sent after the first report.
Duration FailureDetector::report_timeout() const {
    const bool persists = refused_at_ - refused_since_ >= timing.error_persists / 2;
    return persists ? timing.error_persists : timing.error_unanswered;
}

FailureDetector::State FailureDetector::assess(Time now, Duration hold) const {
    if (refused_since_ != never && questions_ >= 2 && now - refused_since_ >= report_timeout()) return State::closed;
    if (silent_since_ != never && now - silent_since_ >= hold) return State::silent;
    return State::alive;
}

Duration FailureDetector::lasted(Time now) const {
    const Time since = refused_since_ != never ? refused_since_ : silent_since_;
    return since == never ? Duration::zero() : now - since;
}

Time FailureDetector::poll_timeout(Duration hold) const {
    Time next = never;
    if (silent_since_ != never) next = silent_since_ + hold;
    if (refused_since_ != never) next = std::min(next, refused_since_ + report_timeout());
    return next;
}

}  // namespace atp::control
