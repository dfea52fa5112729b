// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/time.h"
#include "control/channel_key.h"
#include "control/guarantees.h"
#include "control/owner.h"
#include "control/tenants.h"

namespace atp::control {

// Limits the jobs and channels that a switch serves at a time, and shares them out among owners: tenants, or the hosts
// of an open switch. Several trees may share one room. A job with channels in several trees counts once, for the owner
// that joined first.
//
// A tenant with a limit has no more places than that, and finds these free: nobody else gets the ones it has left.
// Beyond what owners have of their own, shares act while a table is full. Then a job of another owner makes room, if
// that one has more than its share (an eighth, at least two) and at least two more than the newcomer's, and if the job
// is not protected: trees protect jobs that are complete, span hosts and made progress lately. Of the owner that has
// most, the newest such job ends. Its place is kept for the newcomer, which repeats its JOIN meanwhile.
//
// Calling order: one give_back() for each take() that returned `granted`. After `waits`, each tree closes its channels
//   for which must_end() is true; has_ending() tells whether there are any.
// Threads: none. A driver whose threads share a room overrides all calls with a lock.
// Failure: take() returns the limit that is reached, and then counts nothing.
class SwitchRoom {
  public:
    enum class RoomAnswer : std::uint8_t {
        granted,
        no_channel,  // the table is full
        no_job,
        channel_limit,  // the tenant has as many as it may
        job_limit,
        of_another,  // the job is another tenant's
        waits,
        draining,  // and the job is new
    };
    struct Use {
        std::uint32_t jobs = 0;
        std::uint32_t channels = 0;
    };
    static constexpr std::uint32_t shares = 8;
    static constexpr std::uint32_t least_share = 2;
    // A newcomer that does not ask again for so long has given up: its place is free for others.
    static constexpr Duration kept_for = std::chrono::seconds(1);

    SwitchRoom(std::uint32_t jobs, std::uint32_t channels) : most_jobs_(jobs), most_channels_(channels) {}
    SwitchRoom(const SwitchRoom&) = delete;
    SwitchRoom& operator=(const SwitchRoom&) = delete;
    virtual ~SwitchRoom() = default;

    // Counts one channel of the job, and the job with its first channel. `owner`: of the job. `may_end`: another
    // job may end for this one.
    [[nodiscard]] virtual RoomAnswer take(const JobKey& job, const Owner& owner, Time now, bool may_end);
    virtual void give_back(const JobKey& job);
    // The job does not end for others before `until`.
    virtual void protect(const JobKey& job, Time until);
    [[nodiscard]] virtual bool has_ending() const { return ending_ != 0; }
    // The job ends for another one.
    [[nodiscard]] virtual bool must_end(const JobKey& job) const;
    [[nodiscard]] virtual Use use_of(const Owner& owner) const { return held_by(owner); }
    // From now on: jobs that run keep their places. nullptr: the switch is open.
    virtual void set_tenants(std::shared_ptr<const Tenants> tenants);
    // Half of the jobs or of the channels are in use.
    [[nodiscard]] virtual bool is_half_full() const;
    // While it drains, it takes no new job. Those with a place may take more channels.
    virtual void drain(bool drains) { drains_ = drains; }
    [[nodiscard]] virtual bool drains() const { return drains_; }
    [[nodiscard]] virtual std::uint32_t jobs() const { return static_cast<std::uint32_t>(jobs_.size()); }

  private:
    struct SharedJob {
        Owner owner;
        std::uint32_t channels = 0;
        std::uint64_t number = 0;  // in the order of their first channels
        Time protected_until{};
        bool ends = false;
    };
    // A job for which another one ends.
    struct Newcomer {
        JobKey victim;
        bool has_place = false;  // the other one has ended
        Time until{};
    };

    [[nodiscard]] RoomAnswer full_table(const JobKey& job, const Owner& owner) const;
    [[nodiscard]] Use held_by(const Owner& owner) const;
    [[nodiscard]] Use own_of(const Owner& owner) const;
    // What others may still take of their own.
    [[nodiscard]] Use left_to_others(const Owner& owner) const;
    [[nodiscard]] std::optional<JobKey> victim_for(const Owner& owner, bool of_channels, Time now) const;
    void forget_newcomers(Time now);

    const std::uint32_t most_jobs_;
    const std::uint32_t most_channels_;
    std::map<JobKey, SharedJob> jobs_;
    std::map<Owner, Use> owners_;
    std::map<JobKey, Newcomer> newcomers_;  // at most as many as jobs that end or ended for them
    std::shared_ptr<const Tenants> tenants_;
    Guarantees own_jobs_;
    Guarantees own_channels_;
    std::uint32_t channels_ = 0;
    std::uint32_t kept_places_ = 0;  // newcomers with a place
    std::uint32_t ending_ = 0;
    std::uint64_t last_number_ = 0;
    bool drains_ = false;
};

}  // namespace atp::control
