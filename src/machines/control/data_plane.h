// SPDX-License-Identifier: Apache-2.0
// A data plane in the path (a kernel program, a pipeline), as the control plane sees it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/channel_key.h"
#include "control/table_slices.h"
#include "protocol/switch.h"
#include "wire/address.h"

namespace atp::control {

struct AdmittedJob {
    std::uint32_t job = 0;
    std::uint64_t token = 0;
    std::uint8_t level = 0;    // level at which the switch aggregates for the job: the hop of its packets
    std::uint32_t key_id = 0;  // of its tenant's key; 0: none

    [[nodiscard]] JobKey key() const { return {job, token}; }
    bool operator==(const AdmittedJob&) const = default;
};

// Where the gradients of a channel are added: those of the members of one unit at level 0, those of all units at
// level 1.
struct AdmittedPlace {
    std::uint16_t channel = 0;
    std::uint32_t unit = 0;  // its bit in bitmap1; 0: level 1
    std::uint32_t mask = 0;  // all members of the unit, or all units of the job

    bool operator==(const AdmittedPlace&) const = default;
};

// A member whose JOIN passed, and how to reach it.
struct PassedMember {
    std::uint16_t number = 0;  // at level 0, 32 times its unit plus its bit there; at level 1, its unit
    wire::Address address;
    std::uint32_t entrance = 0;            // interface at which its JOIN arrived; 0: not known
    std::array<std::byte, 12> ethernet{};  // addresses of receiver and sender of that frame

    bool operator==(const PassedMember&) const = default;
};

// The jobs that a data plane aggregates, and the counters of their packets. A driver implements it.
//
// Threads: one at a time. Failure: a call that fails changes nothing. The next JOINs of the job repeat it, or the job
//   stays unaggregated.
class DataPlane : public SlicedTable {
  public:
    virtual ~DataPlane() = default;

    // False if there is no room for the job.
    [[nodiscard]] virtual bool admit(const AdmittedJob& job) = 0;
    virtual void dismiss(const JobKey& job) = 0;
    // An admitted job has this key from now on, as jobs() of the next process says.
    virtual void set_key(const JobKey& /*job*/, std::uint32_t /*key_id*/) {}
    // Whose packets these are on a link that the switch marks (LinkSenders).
    virtual void set_sender(const JobKey& /*job*/, std::uint8_t /*number*/) {}
    // A place of the job. The next JOINs repeat it. No effect if the job is not admitted. A data plane that takes masks
    // from the packets ignores it.
    virtual void learn_place(const JobKey& /*job*/, const AdmittedPlace& /*place*/) {}
    // Results of this channel by group carry this number instead of the job's token, and no earlier number any more. No
    // effect if the job is not admitted.
    virtual void learn_group(const ChannelKey& channel, std::uint64_t group_number) = 0;
    // A member that gets a copy of what the server sends once for all members of the channel, after learn_group(). The
    // next JOINs repeat it. Only a member that a copy can reach is named.
    virtual void learn_member(const ChannelKey& /*channel*/, const PassedMember& /*member*/) {}
    // Of a job that an earlier process admitted. Nullopt: all of the table.
    [[nodiscard]] virtual std::optional<atp_range> slice_of(const JobKey& /*job*/) const { return std::nullopt; }
    // Sets the level of an admitted job. At level ATP_LEVELS, its packets are forwarded unaggregated.
    virtual void set_level(const JobKey& job, std::uint8_t level) = 0;
    [[nodiscard]] virtual std::vector<AdmittedJob> jobs() const = 0;
    // Nullopt for a job that is not admitted.
    [[nodiscard]] virtual std::optional<protocol::SwitchCounters> packets_of(const JobKey& job) const = 0;

  protected:
    DataPlane() = default;
    DataPlane(const DataPlane&) = default;
    DataPlane& operator=(const DataPlane&) = default;
};

}  // namespace atp::control
