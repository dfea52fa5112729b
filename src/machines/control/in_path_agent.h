// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/time.h"
#include "control/channel_key.h"
#include "control/data_plane.h"
#include "control/passing_questions.h"
#include "control/tenants.h"
#include "wire/control.h"

namespace atp::control {

// Decides which jobs a switch in the path serves. Such a switch has no address. It learns jobs from the control
// messages that it forwards, as a bridge learns the members of a multicast group. It serves the jobs whose JOINs go to
// its own level, and those whose workers join a higher level separately. A JOIN counts when the JOINED that repeats its
// nonce comes back from the host to which it went (PassingQuestions). With tenants, the first JOINED of a job that
// proves a key names its tenant. Jobs are soft state: members repeat their JOINs, and a job without a JOIN for `hold`
// expires. A LEAVE concerns one member and one channel. After it, a job expires unless another JOIN of the job arrives
// within 2.5 s.
//
// Calling order: handle_message() for each control message, which returns the change; reject() if the data plane has no
//   room for an admitted job; poll_expired() until it returns nothing.
// Threads: none.
// Failure: any other message changes nothing.
class InPathAgent {
  public:
    // charge: the job was admitted without a key, and now has one.
    // learn_group: results of the job by group carry `group_number` instead of its token.
    enum class Change : std::uint8_t { none, admit, charge, learn_group };
    struct AgentChange {
        Change change = Change::none;
        AdmittedJob job;
        std::uint64_t group_number = 0;
        // Of the member whose JOIN was answered, also if nothing changed. Mask 0: the job is not admitted.
        AdmittedPlace place{};
        std::optional<PassedMember> member{};
    };

    InPathAgent(std::uint32_t jobs, Duration hold, std::uint8_t level)
        : jobs_limit_(jobs), hold_(hold), level_(level) {}

    // nullptr: the switch is open. A job keeps the key that it has.
    void set_tenants(std::shared_ptr<const Tenants> tenants) { tenants_ = std::move(tenants); }
    // Adds a job that the data plane admitted before this process started. It expires unless a JOIN arrives in `hold`.
    void remember(const AdmittedJob& job, Time now);
    [[nodiscard]] AgentChange handle_message(const PassingMessage& message, Time now);
    // The data plane did not admit the job. Its next JOINs try again.
    void reject(const JobKey& job);
    // Removes and returns one job whose JOINs have stopped.
    [[nodiscard]] std::optional<AdmittedJob> poll_expired(Time now);

    // JOINs of jobs beyond the limit. Each member and channel of such a job sends several in `hold`.
    [[nodiscard]] std::uint64_t not_admitted() const { return not_admitted_; }

  private:
    struct KnownJob {
        AdmittedJob job;
        Time until;                                       // when the job expires
        std::map<std::uint16_t, std::uint64_t> groups{};  // by channel: its group number; at most most_groups
    };
    static constexpr std::size_t most_groups = 64;

    [[nodiscard]] bool passes_here(const wire::Join& join) const;
    [[nodiscard]] AdmittedPlace place_of(const wire::Join& join) const;
    [[nodiscard]] std::optional<PassedMember> member_of(const wire::Join& join, const PassingMessage& message) const;
    void handle_join(const wire::Join& join, const PassingMessage& message, Time now);
    [[nodiscard]] AgentChange handle_joined(const wire::Joined& joined, const PassingMessage& message, Time now);
    [[nodiscard]] std::uint32_t proven_key(const wire::Joined& joined, const PassingMessage& message) const;
    void handle_leave(const wire::Leave& leave, Time now);

    std::uint32_t jobs_limit_;
    Duration hold_;
    std::uint8_t level_;
    std::map<JobKey, KnownJob> known_jobs_;  // at most jobs_limit_
    PassingQuestions questions_;
    std::shared_ptr<const Tenants> tenants_;
    std::uint64_t not_admitted_ = 0;
};

}  // namespace atp::control
