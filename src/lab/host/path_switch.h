// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"
#include "control/in_path_agent.h"
#include "protocol/archive.h"
#include "protocol/switch.h"
#include "protocol/variant.h"

namespace atp::host {
inline namespace ATP_VARIANT {

struct PathSwitchConfig {
    protocol::SwitchConfig table{};
    std::uint8_t level = 0;
    Duration hold = std::chrono::seconds(1);  // a job without a JOIN for so long expires
};

// A switch in the path of workers: it has no address, adds the gradients that pass, and learns its jobs from the
// messages of joining that pass. The caller knows where a packet goes.
//
// Ownership: owns the machines. Borrows packets for the duration of a call.
// Calling order: handle_message() for a message of joining, which goes on unchanged; handle_packet() for any other
//   packet, which goes on as its verdict says.
// Threads: none. Failure: as protocol::Switch.
class PathSwitch {
  public:
    explicit PathSwitch(const PathSwitchConfig& config)
        : table_(config.table), agent_(config.table.jobs, config.hold, config.level) {}

    void handle_message(std::span<const std::byte> message, Time now);
    void handle_packet(protocol::PacketBuffer& packet, Time now) { table_.handle_packet(packet, now); }

    [[nodiscard]] const protocol::Switch& table() const { return table_; }

    // Of the table. A state is restored while the same jobs are admitted.
    template <protocol::Archive Archive>
    void persist(Archive& archive) {
        table_.persist(archive);
    }

  private:
    protocol::Switch table_;
    control::InPathAgent agent_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::host
