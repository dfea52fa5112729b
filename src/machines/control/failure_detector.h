// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"
#include "protocol/archive.h"

namespace atp::control {

// Whether one peer, at the other end of an edge of the tree, has failed.
//
// A peer is `silent` if nothing was received from it for the hold time. It is `closed` if its host reports that no
// process has its port. A single report proves nothing, since a process may be starting again: reports must continue
// for `error_persists`, or every question must stay unanswered for `error_unanswered`, because hosts limit the rate of
// their reports.
//
// Ownership: owns its state.
// Calling order: any. The caller asks the peer, each `ask` while suspects() is true.
// Threads: none. Failure: none.
class FailureDetector {
  public:
    enum class Peer : std::uint8_t {
        refreshes,  // sends on its own: silence counts from its last message
        answers,    // sends only answers: silence counts from the first question without one
    };
    enum class State : std::uint8_t { alive, silent, closed };

    explicit FailureDetector(Peer peer = Peer::refreshes) : peer_(peer) {}

    // A message of the peer, or data that only it can have sent.
    void handle_received(Time now);
    // A question was sent.
    void handle_asked(Time now);
    // The peer's host reports that no process has the port. True: the first report since the peer was last heard.
    bool handle_refused(Time now);
    // This process did not run for so long, so it could hear nothing.
    void handle_own_pause(Duration pause);

    [[nodiscard]] State assess(Time now, Duration hold) const;
    [[nodiscard]] bool suspects() const { return refused_since_ != never; }
    // `never`: no question waits for an answer.
    [[nodiscard]] Time silent_since() const { return silent_since_; }
    [[nodiscard]] Time received_at() const { return received_at_; }  // Time{}: nothing yet
    // For which the state of assess() has lasted.
    [[nodiscard]] Duration lasted(Time now) const;
    // When assess() may change without further input.
    [[nodiscard]] Time poll_timeout(Duration hold) const;

    template <protocol::Archive Archive>
    void persist(Archive& archive) {
        archive.value(peer_), archive.time(received_at_), archive.time(silent_since_), archive.time(refused_since_);
        archive.time(refused_at_), archive.value(questions_);
    }

  private:
    [[nodiscard]] Duration report_timeout() const;

    Peer peer_;
    Time received_at_{};
    Time silent_since_ = never;
    Time refused_since_ = never;   // first report since the peer was last heard; never: none
    Time refused_at_{};            // the last one
    std::uint32_t questions_ = 0;  // since refused_since_
};

}  // namespace atp::control
