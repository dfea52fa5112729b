// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "control/channel_key.h"
#include "control/guarantees.h"
#include "control/tenants.h"
#include "protocol/slice.h"

namespace atp::control {

// Which sizes a slice may have. A pipeline of match tables has no division, so it finds the index in a slice by a mask.
// The others have slices of any size: they change only when a tenant starts its first job or ends its last, so coarser
// steps would save nothing, and a sixteenth of the table could not divide it among ten teams.
enum class SliceSize : std::uint8_t { any, power_of_two };

// What a tenant with jobs asks of the table.
struct SliceClaim {
    std::uint64_t least = 0;   // aggregators; of all claims together no more than the table has
    std::uint32_t weight = 1;  // above 0
};

// The slices of the tenants that have jobs now, one for each claim, in this order. The table is divided by weight, but
// nobody gets less than `least`. What tenants without jobs could claim is lent that way, too.
[[nodiscard]] std::vector<atp_range> slices_of(std::uint32_t aggregators, std::span<const SliceClaim> claims,
                                               SliceSize size);

// The table of a switch, or of one of its threads. The driver implements it.
class SlicedTable {
  public:
    // As protocol::Switch::set_slice() and end_changes().
    virtual void set_slice(const JobKey& job, const atp_range& slice, std::uint32_t weight) = 0;
    virtual void end_changes() = 0;

  protected:
    SlicedTable() = default;
    ~SlicedTable() = default;
    SlicedTable(const SlicedTable&) = default;
    SlicedTable& operator=(const SlicedTable&) = default;
};

struct TableSlicesConfig {
    std::uint32_t aggregators = 0;
    // Tables among which a tenant's `aggregators` are divided.
    std::uint32_t tables = 1;
    SliceSize size = SliceSize::any;
    // Time for which older fragments find their aggregators in the slice of before: the ageing time of the table, after
    // which anybody may claim these.
    Duration change = std::chrono::milliseconds(500);
};

// Which slice of a table each job has. Jobs of one tenant share its slice. A tenant keeps its slice for a second after
// its last job, so that short jobs in turn do not move the others each time. While a change is under way, the next one
// waits: for the new range of a job to be that of before, no fragment may be left in the one before that.
//
// Ownership: borrows the table of each call.
// Calling order: set_tenants(); add() for each job that the table has admitted and remove() for each that it dismissed,
//   then handle_timeout(), and again at poll_timeout(). At an open switch, the table hears of nothing.
// Threads: none. Failure: none.
class TableSlices {
  public:
    explicit TableSlices(const TableSlicesConfig& config) : config_(config) {}

    // nullptr: the switch is open. Jobs whose tenants the file no longer names share one slice, of weight 1 and
    // without a guarantee.
    void set_tenants(std::shared_ptr<const Tenants> tenants);
    // A job that is there already changes its tenant.
    void add(const JobKey& job, std::string_view tenant);
    // Of a table of an earlier process, in which a change may be under way. nullopt: the job had the whole table.
    void take_over(const JobKey& job, std::string_view tenant, const std::optional<atp_range>& slice, Time now);
    void remove(const JobKey& job, Time now);
    void handle_timeout(SlicedTable& table, Time now);
    [[nodiscard]] Time poll_timeout() const;

    // Calls visit(job, tenant, slice) for each job with a slice. Empty: its tenant is not in the file any more.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (const auto& [key, job] : jobs_) {
            if (job.slice) visit(key, known(job.tenant), *job.slice);
        }
    }

  private:
    struct SlicedJob {
        std::string tenant{};
        std::optional<atp_range> slice{};  // that the table has
    };
    struct Claimed {
        atp_range slice{};
        std::uint32_t weight = 1;
    };
    using Claims = std::map<std::string, Claimed, std::less<>>;  // by tenant

    [[nodiscard]] Claims claims() const;
    // Empty: not in the file any more.
    [[nodiscard]] std::string_view known(std::string_view tenant) const;
    [[nodiscard]] bool has_jobs(std::string_view tenant) const;

    TableSlicesConfig config_;
    std::shared_ptr<const Tenants> tenants_;
    Guarantees least_;
    std::map<JobKey, SlicedJob> jobs_;
    std::map<std::string, Time, std::less<>> kept_until_;  // of tenants whose last job ended
    Time change_ends_ = never;                             // never: no change is under way
    bool is_due_ = false;                                  // the slices may differ from what is wanted
};

}  // namespace atp::control
