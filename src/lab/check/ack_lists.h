// SPDX-License-Identifier: Apache-2.0
// Lists of ACKs without lanes (docs/protocol.md#ack-lists).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "check/configuration.h"
#include "check/layout.h"
#include "check/system.h"
#include "control/branch.h"
#include "endpoint/ack_gatherer.h"
#include "protocol/switch.h"
#include "protocol/variant.h"

namespace atp::check {

namespace ATP_VARIANT {

// The lists that one switch makes, by the machine of the product.
//
// A list leaves when it is full, or when an ACK without lanes leaves by itself. In the product, another list leaves
// when a batch of packets ends, and it may wait for longer. Here it may leave at any moment: from the first ACK on, a
// command to the switch is in flight, with which all lists leave.
//
// Ownership: owns the gatherer, and a branch for each job.
// Threads: none.
class AckLists {
  public:
    // `at`: the node of the switch.
    AckLists(const Configuration& configuration, const Layout& layout, unsigned at);

    // True if the packet waits in a list. `table` has handled it. Lists that leave at once are in `step`.
    [[nodiscard]] bool take(const protocol::PacketBuffer& packet, const protocol::Switch& table, Step& step);
    // The command arrives.
    void send_all(Step& step);
    // The switch restarts: ACKs that wait are lost.
    void clear();
    [[nodiscard]] bool empty() const { return gatherer_.empty(); }

    template <class Archive>
    void persist(Archive& archive);

  private:
    [[nodiscard]] control::Branch branch_of(const Configuration& configuration, const Layout& layout,
                                            unsigned job) const;
    void send(bool expects_more, Step& step);
    void assess(std::span<const std::byte> packet, Step& step);

    unsigned at_;
    std::vector<control::Branch> branches_;  // by job
    endpoint::AckGatherer gatherer_{endpoint::usual_ack_hold};
    bool command_in_flight_ = false;
    std::vector<Bytes> waiting_;  // ghost: ACKs that were taken and have not left, without their index
};

[[nodiscard]] bool is_command_to_send_lists(std::span<const std::byte> packet);
// The ACKs of a list, as packets that arrive alone. An independent reader of the table in docs/protocol.md.
[[nodiscard]] std::vector<Bytes> acks_of(std::span<const std::byte> list);

template <class Archive>
void AckLists::persist(Archive& archive) {
    gatherer_.persist(archive);
    archive.value(command_in_flight_);
    std::uint64_t waiting = waiting_.size();
    archive.value(waiting);
    waiting_.resize(waiting, Bytes(ATP_HEADER_BYTES));
    for (Bytes& ack : waiting_) archive.bytes(ack);
}

}  // namespace ATP_VARIANT
}  // namespace atp::check
