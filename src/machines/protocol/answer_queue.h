// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ring.h"
#include "protocol/channel.h"
#include "protocol/fragment_format.h"
#include "protocol/fragment_record.h"
#include "protocol/membership.h"
#include "wire/format.h"

namespace atp::protocol {

// Packets that a server has to send, without their lanes. The server takes the lanes from the fragment's record when it
// writes the packet.
//
// Ownership: owns the queue, allocated at construction. Borrows `membership`, which must outlive the queue.
// Calling order: push(). Then front(), is_current(), header_of() if the answer is current, and pop().
// Threads: none.
// Failure: push() returns false if the queue is full; a PROBE requests the answer again.
class AnswerQueue {
  public:
    // The packet that caused an answer.
    struct Cause {
        std::uint16_t worker = ATP_WORKER_ALL;
        std::uint8_t sending = 0;

        template <class Archive>
        void persist(Archive& archive) {
            archive.value(worker), archive.value(sending);
        }
    };

    // The answer repeats both, so that a worker can tell which of its packets it answers.
    [[nodiscard]] static Cause cause_of(const atp_header& header) {
        return {.worker = header.worker, .sending = header.sending};
    }

    struct Answer {
        std::uint8_t type = 0;
        std::uint8_t requested = ATP_DTYPE_NONE;  // type that a NACK requests
        std::uint8_t scale = scale_of_job;        // of a FLUSH; an ACK has that of its record
        std::uint16_t flags = 0;
        std::uint16_t worker = ATP_WORKER_ALL;
        Cause cause{};
        std::uint8_t hop = 0;
        std::uint32_t seq = 0;
        std::uint32_t members = 0;   // bitmap0
        std::uint32_t units = 0;     // bitmap1
        bool without_lanes = false;  // an ACK for workers that do not get the result

        template <class Archive>
        void persist(Archive& archive) {
            archive.value(type), archive.value(requested), archive.value(flags), archive.value(worker);
            cause.persist(archive);
            archive.value(scale), archive.value(hop), archive.value(seq), archive.value(members), archive.value(units);
            archive.value(without_lanes);
        }
    };

    AnswerQueue(const ChannelConfig& channel, const Membership& membership);

    [[nodiscard]] bool push(const Answer& answer) { return answers_.push(answer); }
    [[nodiscard]] bool empty() const { return answers_.empty(); }
    [[nodiscard]] std::size_t size() const { return answers_.size(); }
    [[nodiscard]] const Answer& front() const { return answers_.front(); }
    void pop() { answers_.pop(); }

    // `record`: the record that the answer's fragment had when it was queued. False if a newer fragment has taken the
    // record, or if the fragment has completed in the meantime: its ACK follows.
    [[nodiscard]] static bool is_current(const Answer& answer, const FragmentRecord& record);
    [[nodiscard]] atp_header header_of(const Answer& answer, const FragmentRecord& record) const;

    template <class Archive>
    void persist(Archive& archive) {
        answers_.persist(archive);
    }

  private:
    ChannelConfig channel_;
    const Membership& membership_;
    Ring<Answer> answers_;
};

}  // namespace atp::protocol
