// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/data_plane.h"
#include "p4agent/bmv2.h"
#include "p4agent/job_tables.h"
#include "protocol/switch.h"
#include "wire/address.h"

namespace atp::p4agent {

// The jobs and counters of a running simple_switch, which runs one of the programs of PipelineProgram. Another target
// needs another control::DataPlane.
//
// Ownership: owns the connection. The switch keeps its entries when the object is destroyed.
// Calling order: open() removes all jobs of an earlier agent, so that their next JOINs admit them again; then the calls
//   of DataPlane.
// Threads: one.
// Failure: open() returns the reason. After a call without an answer failed() is true: destroy the object, and
//   open another one.
class PipelinePlane final : public control::DataPlane {
  public:
    [[nodiscard]] static Result<std::unique_ptr<PipelinePlane>> open(const wire::Address& server);

    [[nodiscard]] bool admit(const control::AdmittedJob& job) override;
    void dismiss(const control::JobKey& job) override;
    void learn_place(const control::JobKey& job, const control::AdmittedPlace& place) override;
    void learn_group(const control::ChannelKey& channel, std::uint64_t group_number) override;
    void set_slice(const control::JobKey& /*job*/, const atp_range& /*slice*/, std::uint32_t /*weight*/) override {}
    void end_changes() override {}
    void set_level(const control::JobKey& job, std::uint8_t level) override;
    [[nodiscard]] std::vector<control::AdmittedJob> jobs() const override;
    [[nodiscard]] std::optional<protocol::SwitchCounters> packets_of(const control::JobKey& job) const override;

    // Counters of all packets.
    [[nodiscard]] protocol::SwitchCounters packets() const;
    [[nodiscard]] std::uint64_t damaged() const { return bmv2_.count("damaged", 0); }
    [[nodiscard]] const PipelineProgram& program() const { return bmv2_.program(); }
    [[nodiscard]] const std::vector<std::string>& interfaces() const { return bmv2_.interfaces(); }
    [[nodiscard]] bool failed() const { return bmv2_.failed(); }

  private:
    struct Served {
        control::AdmittedJob job;
        std::uint16_t slot = 0;  // of its counters
    };
    explicit PipelinePlane(Bmv2 bmv2);
    [[nodiscard]] protocol::SwitchCounters events_in(std::uint16_t slot) const;

    // Reading counters is a call too.
    mutable Bmv2 bmv2_;
    std::unique_ptr<JobTables> tables_;
    std::map<control::JobKey, Served> served_;
    std::vector<std::uint16_t> free_slots_;
};

}  // namespace atp::p4agent
