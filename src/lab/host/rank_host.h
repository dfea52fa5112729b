// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "base/time.h"
#include "endpoint/channel_machine.h"
#include "protocol/archive.h"
#include "protocol/tensor.h"
#include "protocol/variant.h"
#include "wire/address.h"
#include "wire/datagram.h"
#include "wire/outbox.h"
#include "wire/send_error.h"

namespace atp::host {
inline namespace ATP_VARIANT {

// The process of a rank for one channel: the shipped machine at an address, with the tensors that it sums. The
// simulator and the model checker reach the machines of a rank through this class only, as a driver of the product
// does.
//
// Ownership: owns the machine, and each tensor that submit() was given to own, until the poll_event() after its
//   `completed`. Borrows the others.
// Calling order: handle_*() for what happened, handle_timeout() at poll_timeout(). After each, poll_event() until it
//   returns nothing, then transmit().
// Threads: none. Failure: as endpoint::ChannelMachine.
class RankHost {
  public:
    // `blind_resends`: a timer of the worker resends fragments instead of asking about them (policy/blind_resends.h).
    RankHost(const endpoint::ChannelMachineConfig& config, const wire::Address& address, bool blind_resends = false)
        : machine_(config), address_(address), blind_resends_(blind_resends) {}

    void handle_datagram(const wire::Datagram& datagram, Time now) { machine_.handle_datagram(datagram, now); }
    void handle_group_datagram(const wire::Datagram& datagram, Time now) {
        machine_.handle_group_datagram(datagram, now);
    }
    void handle_send_error(const wire::SendError& error, Time now) { machine_.handle_send_error(error, now); }
    void handle_timeout(Time now) { machine_.handle_timeout(now); }

    // False: the machine takes no tensor now.
    [[nodiscard]] bool submit(protocol::Tensor& borrowed, Time now, Time deadline = never);
    [[nodiscard]] bool submit(std::unique_ptr<protocol::Tensor> owned, Time now, Time deadline = never);
    void close(Time now) { machine_.close(now); }
    void end() { machine_.end(); }

    // Writes everything that the machine may send now.
    void transmit(wire::Outbox& out, Time now);
    [[nodiscard]] std::optional<endpoint::ChannelEvent> poll_event(Time now);
    [[nodiscard]] Time poll_timeout() const { return machine_.poll_timeout(); }

    // Of the event `completed` that poll_event() returned last.
    [[nodiscard]] protocol::Tensor& completed() const { return *completed_; }
    [[nodiscard]] const endpoint::ChannelMachine& machine() const { return machine_; }
    [[nodiscard]] const endpoint::ChannelMachineConfig& config() const { return machine_.config(); }
    [[nodiscard]] const wire::Address& address() const { return address_; }

    // The parts of the saved state: see ChannelMachine. Tensors are borrowed, and saved as pointers.
    template <protocol::Archive Archive>
    void persist_data(Archive& archive) {
        machine_.persist_data(archive);
        auto size = static_cast<std::uint16_t>(submitted_.size());
        archive.value(size);
        submitted_.resize(size);
        for (Submitted& submitted : submitted_) archive.value(submitted.tensor);
    }
    template <protocol::Archive Archive>
    void persist_joining(Archive& archive) {
        machine_.persist_joining(archive);
    }
    template <protocol::Archive Archive>
    void persist(Archive& archive) {
        persist_joining(archive), persist_data(archive);
    }

  private:
    struct Submitted {
        protocol::Tensor* tensor = nullptr;
        std::unique_ptr<protocol::Tensor> owned;
    };

    void transmit_blindly(wire::Outbox& out, Time now);

    std::deque<Submitted> submitted_;  // in flight, the oldest first
    std::unique_ptr<protocol::Tensor> kept_;
    protocol::Tensor* completed_ = nullptr;
    endpoint::ChannelMachine machine_;  // borrows the tensors above
    wire::Address address_;
    bool blind_resends_;
};

}  // namespace ATP_VARIANT
}  // namespace atp::host
