// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"
#include "control/data_plane_agent.h"
#include "control/timing.h"
#include "protocol/archive.h"
#include "protocol/copy_credit.h"
#include "protocol/switch.h"
#include "protocol/variant.h"

namespace atp::host {
inline namespace ATP_VARIANT {

struct PathHostConfig {
    protocol::SwitchConfig table{};
    std::uint8_t level = 0;  // at which it aggregates
    Duration hold = control::timing.hold;
};

// A switch in the path, without an address: the shipped table and agent, as the switches of `xdp` and P4 have them. It
// learns jobs from the JOINs and JOINEDs that pass.
//
// Ownership: owns the machines.
// Calling order: handle_packet() for each packet that passes, or handle_message() for what the caller knows to be a
//   message of joining, which goes on; poll() about every second, so that jobs expire.
// Threads: none. Failure: a packet of a job that it has not admitted passes unchanged.
class PathHost final : private control::DataPlane {
  public:
    enum class Passage : std::uint8_t {
        on,       // to its destination
        back,     // to its sender: the answer to a FLUSH
        dropped,  // its lanes wait in the table
    };

    explicit PathHost(const PathHostConfig& config)
        : table_(config.table), agent_(*this, config.table.jobs, config.hold, config.level), level_(config.level) {}

    // Rewrites the packet in place. `packet.verdict` tells what the table did; its route is no answer.
    [[nodiscard]] Passage handle_packet(protocol::PacketBuffer& packet, const wire::Address& from,
                                        const wire::Address& to, Time now);
    // Who gets a copy of a packet or message that goes on to `to`: it is for all members of a channel, and the job can
    // pay for the copies.
    [[nodiscard]] std::vector<wire::Address> copies_of(std::span<const std::byte> bytes, const wire::Address& to,
                                                       Time now);
    void handle_message(const control::PassingMessage& message, Time now) { agent_.handle_message(message, now); }
    void poll(Time now) { agent_.poll(now); }
    [[nodiscard]] const protocol::Switch& table() const { return table_; }

    // Of the table. A state is restored while the same jobs are admitted.
    template <protocol::Archive Archive>
    void persist(Archive& archive) {
        table_.persist(archive);
    }

  private:
    struct Group {
        std::uint64_t number = 0;  // what is sent once for all members carries it
        std::map<std::uint16_t, wire::Address> members{};
    };
    struct Admitted {
        control::AdmittedJob job;
        std::map<std::uint16_t, Group> groups{};  // by channel
        atp_copy_credit credit{};
    };

    [[nodiscard]] bool admit(const control::AdmittedJob& job) override;
    void dismiss(const control::JobKey& job) override;
    void learn_group(const control::ChannelKey& channel, std::uint64_t group_number) override;
    void learn_member(const control::ChannelKey& channel, const control::PassedMember& member) override;
    void set_slice(const control::JobKey& job, const atp_range& slice, std::uint32_t weight) override {
        table_.set_slice(job.job, job.token, slice, weight);
    }
    void end_changes() override { table_.end_changes(); }
    void set_level(const control::JobKey& job, std::uint8_t level) override;
    [[nodiscard]] std::vector<control::AdmittedJob> jobs() const override;
    [[nodiscard]] std::optional<protocol::SwitchCounters> packets_of(const control::JobKey& job) const override;

    // nullptr: of no admitted job.
    [[nodiscard]] const control::AdmittedJob* job_of(const std::byte* packet) const;
    // With the job that has it; nullptr: it is no group's number.
    [[nodiscard]] std::pair<const Admitted*, const Group*> group_of(std::uint32_t job, std::uint64_t number) const;
    void add_credit(const control::JobKey& job, std::size_t bytes);

    protocol::Switch table_;
    control::DataPlaneAgent agent_;
    std::uint8_t level_;
    std::map<control::JobKey, Admitted> jobs_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::host
