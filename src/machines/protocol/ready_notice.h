// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "protocol/sequence.h"

namespace atp::protocol {

// When a worker sends READY. A fragment with one sender completes only when every worker has said that it takes the
// result (H60, docs/spec/hazards.md#h60), and a sum without the numbers of its owner when the owner has. A READY covers
// all earlier fragments, so one serves a quarter of the window. It never passes a fragment that its owner has to send.
//
// Ownership: a value.
// Calling order: note_started() for each fragment that needs a READY. If is_due(), send a READY for all fragments
//   before end(), and call note_sent(). stop_at() for a fragment that no READY may pass, and go_on() when it has its
//   ACK. repeat() at an expiry of the timer, and advance() as ACKs arrive.
// Threads: none. Failure: none. A lost READY is repeated at the next expiry.
class ReadyNotice {
  public:
    explicit ReadyNotice(std::uint32_t first_seq) : needed_until_(first_seq), sent_until_(first_seq) {}

    void note_started(std::uint32_t seq) { needed_until_ = seq + 1; }
    // Requires !stopped().
    void stop_at(std::uint32_t seq) { stopped_ = true, stopped_at_ = seq; }
    void go_on() { stopped_ = false; }
    [[nodiscard]] bool stopped() const { return stopped_; }
    [[nodiscard]] bool stopped_at(std::uint32_t seq) const { return stopped_ && stopped_at_ == seq; }
    // `window`: fragments that may be in flight. `ended`: no further fragment can start before something else happens.
    [[nodiscard]] bool is_due(std::uint32_t next_seq, std::uint32_t window, bool ended) const {
        const std::uint32_t until = end(next_seq);
        if (!before(sent_until_, needed_until_) || !before(sent_until_, until)) return false;
        return ended || until - sent_until_ >= std::max(window / 4, 1U);
    }
    // Argument of a READY that is sent now.
    [[nodiscard]] std::uint32_t end(std::uint32_t next_seq) const { return stopped_ ? stopped_at_ : next_seq; }
    void note_sent(std::uint32_t until) { sent_until_ = until, repeats_ = 0; }
    // 1 if the next READY repeats one.
    [[nodiscard]] std::uint8_t repeats() const { return repeats_; }
    // Fragments in flight, from `expected` on, may lack the READY that was sent for them.
    void repeat(std::uint32_t expected) {
        if (sent_until_ != expected) repeats_ = 1;
        sent_until_ = expected;
    }
    // Every fragment before `expected` has an ACK. After 2^31 further fragments an old mark would compare as newer.
    void advance(std::uint32_t expected) {
        if (before(needed_until_, expected)) needed_until_ = expected;
        if (before(sent_until_, expected)) sent_until_ = expected;
    }

    template <class Archive>
    void persist(Archive& archive) {
        archive.value(needed_until_), archive.value(sent_until_), archive.value(stopped_), archive.value(stopped_at_);
        archive.unread(repeats_);
    }

  private:
    std::uint32_t needed_until_;  // one past the last fragment that needs a READY
    std::uint32_t sent_until_;    // argument of the last READY
    bool stopped_ = false;
    std::uint32_t stopped_at_ = 0;  // valid if stopped_
    std::uint8_t repeats_ = 0;
};

}  // namespace atp::protocol
