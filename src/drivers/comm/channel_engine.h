// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/time.h"
#include "protocol/tensor.h"
#include "protocol/worker.h"
#include "switchml/worker.h"
#include "wire/control.h"

namespace atp::comm {

// Which machine a channel has, and how that is set up; the other's configuration says nothing.
struct WorkerPlan {
    wire::ChannelProtocol protocol = wire::ChannelProtocol::atp;
    protocol::WorkerConfig atp;
    switchml::WorkerConfig switchml;
};

// A tensor is done, or will never be: what the machines' own events say.
struct WorkerEvent {
    enum class Kind : std::uint8_t {
        completed,
        timed_out,
        mismatched,  // ATP: workers do different things at one place of the stream
        overflowed,  // SwitchML: a number or a sum does not fit 32 bits
    };
    Kind kind = Kind::completed;
    Duration elapsed{};
    bool heard = false;  // a result, or what else the other end answers; and when last
    Time heard_at{};
    std::uint32_t missing_units = 0;  // ATP: who was waited for, where that is known
    std::uint32_t missing_members = 0;
};

// A channel's worker, of whichever protocol: the machine's own methods, and its events and counters in one form.
//
// Calling order, ownership and threads are those of protocol::Worker; begin() comes before the first tensor.
class ChannelWorker {
  public:
    virtual ~ChannelWorker() = default;

    // The tree stands. SwitchML's packets call their job `stream`.
    virtual void begin(std::uint8_t stream) = 0;
    [[nodiscard]] virtual std::optional<std::uint64_t> submit(protocol::Tensor& tensor, Time now, Time deadline) = 0;
    virtual void handle_packet(std::span<std::byte> bytes, bool congested, Time now) = 0;
    virtual void handle_timeout(Time now) = 0;
    [[nodiscard]] virtual std::optional<std::size_t> poll_transmit(std::span<std::byte> buffer, Time now) = 0;
    [[nodiscard]] virtual Time poll_timeout() const = 0;
    [[nodiscard]] virtual std::optional<WorkerEvent> poll_event() = 0;

    [[nodiscard]] virtual bool failed() const = 0;
    [[nodiscard]] virtual std::size_t packet_bytes() const = 0;
    // Of SwitchML's those that mean the same.
    [[nodiscard]] virtual protocol::WorkerCounters counters() const = 0;
    // How many packets may be under way now.
    [[nodiscard]] virtual std::uint32_t window_packets() const = 0;
};

[[nodiscard]] std::unique_ptr<ChannelWorker> make_channel_worker(const WorkerPlan& plan);

}  // namespace atp::comm
