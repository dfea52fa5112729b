// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "base/time.h"
#include "control/data_plane.h"
#include "wire/control.h"

namespace atp::control {

// Decides which jobs a switch in the path serves. Such a switch has no address. It learns jobs from the control
// messages that it forwards, as a bridge learns the members of a multicast group. It serves the jobs whose JOINs go to
// its own level, and those whose workers join a higher level separately. Jobs are soft state: members repeat their
// JOINs every second, and a job without a JOIN for `hold` expires. A LEAVE concerns one member and one channel. After
// it, a job expires unless another JOIN of the job arrives within 2.5 s.
//
// Calling order: handle_message() for each control message, which returns the change; poll_expired() until it returns
//   nothing.
// Threads: none.
// Failure: a message that is neither JOIN nor LEAVE changes nothing. A JOIN of a known job with another token changes
//   nothing, unless a LEAVE of that job has arrived.
class InPathAgent {
  public:
    enum class Change : std::uint8_t { none, admit };
    struct AgentChange {
        Change change = Change::none;
        AdmittedJob job;
    };

    InPathAgent(std::uint32_t jobs, Duration hold, std::uint8_t level)
        : jobs_limit_(jobs), hold_(hold), level_(level) {}

    // Adds a job that the data plane admitted before this process started. It expires unless a JOIN arrives in `hold`.
    void remember(const AdmittedJob& job, Time now);
    [[nodiscard]] AgentChange handle_message(std::span<const std::byte> message, Time now);
    // Removes and returns one job whose JOINs have stopped.
    [[nodiscard]] std::optional<AdmittedJob> poll_expired(Time now);

    // JOINs of jobs beyond the limit. Each member and channel of such a job sends one every second.
    [[nodiscard]] std::uint64_t not_admitted() const { return not_admitted_; }

  private:
    struct KnownJob {
        AdmittedJob job;
        Time until;         // when the job expires
        bool left = false;  // a LEAVE arrived, and no JOIN since
    };

    [[nodiscard]] bool passes_here(const wire::Join& join) const;
    [[nodiscard]] AgentChange handle_join(const AdmittedJob& job, Time now);
    void handle_leave(const wire::Leave& leave, Time now);

    std::uint32_t jobs_limit_;
    Duration hold_;
    std::uint8_t level_;
    std::map<std::uint32_t, KnownJob> known_jobs_;  // at most jobs_limit_
    std::uint64_t not_admitted_ = 0;
};

}  // namespace atp::control
