// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "base/time.h"
#include "control/data_plane.h"
#include "wire/control.h"

namespace atp::control {

// Whom a switch that nobody addresses is to serve: learnt from the control messages that pass, as a bridge learns who
// is in a multicast group. A JOIN to a switch of level 0 or 1 says that packets of its job will pass on their way to
// that level; they are aggregated here for the level that this switch is of, where workers leave that one to the path.
// Soft state: a job whose JOINs, which are said again every second, are not heard for `hold` is gone. A LEAVE is one
// member's and of one channel: after it a job is gone that nobody else speaks of for as long as two JOINs take.
//
// Calling order: handle_message() for each; it says what changes. poll_expired() until it returns nothing.
// Threads: none. Failure: what is no such message changes nothing; nor does a JOIN with another token than that of a
// job that is still heard, unless somebody has left it.
class Admission {
  public:
    enum class Change : std::uint8_t { none, admit };
    struct Verdict {
        Change change = Change::none;
        AdmittedJob job;
    };

    Admission(std::uint32_t jobs, Duration hold, std::uint8_t level) : jobs_limit_(jobs), hold_(hold), level_(level) {}

    // Of an earlier start: admitted already, to be heard again.
    void remember(const AdmittedJob& job, Time now);
    [[nodiscard]] Verdict handle_message(std::span<const std::byte> message, Time now);
    // A job that nobody has spoken of for too long; forgotten with this.
    [[nodiscard]] std::optional<AdmittedJob> poll_expired(Time now);

    // JOINs of jobs that found no room. Each member and channel of such a job says one every second.
    [[nodiscard]] std::uint64_t not_admitted() const { return not_admitted_; }

  private:
    struct Heard {
        AdmittedJob job;
        Time until;
        bool left = false;  // by somebody, and nobody has joined since
    };

    [[nodiscard]] bool passes_here(const wire::Join& join) const;
    [[nodiscard]] Verdict handle_join(const AdmittedJob& job, Time now);
    void handle_leave(const wire::Leave& leave, Time now);

    std::uint32_t jobs_limit_;
    Duration hold_;
    std::uint8_t level_;
    std::unordered_map<std::uint32_t, Heard> heard_;  // at most jobs_limit_
    std::uint64_t not_admitted_ = 0;
};

}  // namespace atp::control
