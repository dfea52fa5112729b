// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/time.h"
#include "endpoint/node_machine.h"
#include "endpoint/persist_shard_machine.h"
#include "endpoint/shard_machine.h"
#include "protocol/variant.h"
#include "wire/address.h"
#include "wire/datagram.h"
#include "wire/outbox.h"
#include "wire/send_error.h"

namespace atp::host {
inline namespace ATP_VARIANT {

struct SwitchHostConfig {
    endpoint::ShardMachineConfig shard{};
    wire::Address address;   // of the socket
    std::uint64_t boot = 1;  // draws what the process draws at its start: its nonces and its secret
};

// The process of a switch with one shard: the shipped machines at an address. The simulator, the swarm and tests reach
// the machines of a switch through this class only, as a driver of the product does.
//
// Ownership: owns the machines. The outbox may refer to datagrams until it is flushed.
// Calling order: handle_*() for what happened, handle_timeout() at poll_timeout(); flush the outbox after each.
// Threads: none. Failure: as endpoint::ShardMachine.
class SwitchHost {
  public:
    explicit SwitchHost(const SwitchHostConfig& config);

    void handle_batch(std::span<const wire::Datagram> batch, wire::Outbox& out, Time now);
    void handle_datagram(const wire::Datagram& datagram, wire::Outbox& out, Time now) {
        handle_batch({&datagram, 1}, out, now);
    }
    void handle_send_error(const wire::SendError& error, wire::Outbox& out, Time now);
    void handle_timeout(wire::Outbox& out, Time now);
    [[nodiscard]] Time poll_timeout() const { return shard_.poll_timeout(); }

    [[nodiscard]] const endpoint::ShardMachine& shard() const { return shard_; }
    // Whose slices a test changes by itself.
    [[nodiscard]] control::SlicedTable& sliced() { return shard_; }
    [[nodiscard]] const endpoint::NodeMachine& node() const { return node_; }
    [[nodiscard]] const wire::Address& address() const { return address_; }

    // The parts of the saved state: see ShardMachine. The node keeps only reports, which nobody asks for here.
    template <protocol::Archive Archive>
    void persist_data(Archive& archive) {
        shard_.persist_data(archive);
    }
    template <protocol::Archive Archive>
    void persist_joining(Archive& archive) {
        shard_.persist_joining(archive);
    }
    template <protocol::Archive Archive>
    void persist(Archive& archive) {
        persist_joining(archive), persist_data(archive);
    }

  private:
    void pass_messages(wire::Outbox& out, Time now);

    endpoint::NodeMachine node_;
    endpoint::ShardMachine shard_;
    wire::Address address_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::host
