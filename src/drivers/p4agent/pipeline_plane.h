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
#include "p4agent/thrift.h"
#include "protocol/switch.h"
#include "wire/address.h"

namespace atp::p4agent {

// Port of the pipeline at which the agent gets copies of control messages.
inline constexpr std::int32_t control_port_number = 64;

// What the loaded program has: sizes of its registers and counters.
struct PipelineProgram {
    std::uint32_t aggregators = 0;
    std::uint32_t lanes = 0;  // of an aggregator
    std::uint32_t jobs = 0;
};
// From the program as BMv2 reports it (JSON). Nullopt if it is not p4/atp.v1model.p4.
[[nodiscard]] std::optional<PipelineProgram> program_of(const std::string& json);

// The tables, counters and groups of a running simple_switch, which runs p4/atp.v1model.p4. Another target needs
// another control::DataPlane.
//
// Ownership: owns the connection. The switch keeps its entries when the object is destroyed.
// Calling order: open() removes all jobs of an earlier agent, so that their next JOINs admit them again; then the calls
//   of DataPlane.
// Threads: one.
// Failure: open() returns the reason. After a call without answer failed() is true, and the object is of no further
// use:
//   the caller opens another one.
class PipelinePlane final : public control::DataPlane {
  public:
    [[nodiscard]] static Result<std::unique_ptr<PipelinePlane>> open(const wire::Address& server);

    [[nodiscard]] bool admit(const control::AdmittedJob& job) override;
    void dismiss(const control::JobKey& job) override;
    void learn_group(const control::JobKey& job, std::uint64_t group_number) override;
    void set_level(const control::JobKey& job, std::uint8_t level) override;
    [[nodiscard]] std::vector<control::AdmittedJob> jobs() const override;
    [[nodiscard]] std::optional<protocol::SwitchCounters> packets_of(const control::JobKey& job) const override;

    // Counters of all packets.
    [[nodiscard]] protocol::SwitchCounters packets() const;
    [[nodiscard]] std::uint64_t damaged() const { return count("damaged", 0); }
    [[nodiscard]] const PipelineProgram& program() const { return program_; }
    [[nodiscard]] const std::vector<std::string>& interfaces() const { return interfaces_; }
    [[nodiscard]] bool failed() const { return failed_; }

  private:
    struct JobEntry {
        std::uint64_t token = 0;  // or number of a group
        std::int64_t handle = 0;
    };
    struct Served {
        control::AdmittedJob job;
        std::uint16_t slot = 0;  // of its counters
        std::vector<JobEntry> entries;
    };
    explicit PipelinePlane(ThriftConnection connection) : connection_(std::move(connection)) {}

    [[nodiscard]] Result<void> prepare();
    [[nodiscard]] Result<void> flood_to_all_ports();
    std::optional<ThriftValue> call(const char* service, const char* function, const ThriftArguments& arguments) const;
    [[nodiscard]] std::optional<JobEntry> add_entry(const Served& served, std::uint64_t token);
    [[nodiscard]] std::uint64_t count(const char* counter, std::uint32_t index) const;
    [[nodiscard]] protocol::SwitchCounters events_in(std::uint16_t slot) const;

    // Reading counters is a call too.
    mutable ThriftConnection connection_;
    mutable bool failed_ = false;
    PipelineProgram program_;
    std::vector<std::string> interfaces_;
    std::map<control::JobKey, Served> served_;
    std::vector<std::uint16_t> free_slots_;
};

}  // namespace atp::p4agent
