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

// Protocol of a channel, and the configuration of its machine. Only the configuration of `protocol` is used.
struct WorkerPlan {
    wire::ChannelProtocol protocol = wire::ChannelProtocol::atp;
    protocol::WorkerConfig atp;
    switchml::WorkerConfig switchml;
};

// End of one tensor, in a form common to both protocols.
struct WorkerEvent {
    enum class Kind : std::uint8_t {
        completed,
        timed_out,
        mismatched,  // ATP: ranks called different operations at one position of the stream
        overflowed,  // SwitchML: a value or a sum does not fit 32 bits
    };
    Kind kind = Kind::completed;
    Duration elapsed{};
    bool heard = false;  // the server or switch answered, last at heard_at
    Time heard_at{};
    std::uint32_t missing_units = 0;  // ATP: units that were missing; 0: not known
    std::uint32_t missing_members = 0;
};

// Worker of a channel, for either protocol: the methods of the machine, with events and counters in a common form.
//
// Ownership, calling order and threads: as protocol::Worker. begin() comes before the first submit().
class ChannelWorker {
  public:
    virtual ~ChannelWorker() = default;

    // The tree is ready. `stream`: job number in SwitchML's packets; ATP ignores it.
    virtual void begin(std::uint8_t stream) = 0;
    [[nodiscard]] virtual std::optional<std::uint64_t> submit(protocol::Tensor& tensor, Time now, Time deadline) = 0;
    virtual void handle_packet(std::span<std::byte> bytes, bool congested, Time now) = 0;
    virtual void handle_timeout(Time now) = 0;
    [[nodiscard]] virtual std::optional<std::size_t> poll_transmit(std::span<std::byte> buffer, Time now) = 0;
    [[nodiscard]] virtual Time poll_timeout() const = 0;
    [[nodiscard]] virtual std::optional<WorkerEvent> poll_event() = 0;

    [[nodiscard]] virtual bool failed() const = 0;
    [[nodiscard]] virtual std::size_t packet_bytes() const = 0;
    // SwitchML sets only the counters that have the same meaning.
    [[nodiscard]] virtual protocol::WorkerCounters counters() const = 0;
    // Packets that may be in flight now.
    [[nodiscard]] virtual std::uint32_t window_packets() const = 0;
};

[[nodiscard]] std::unique_ptr<ChannelWorker> make_channel_worker(const WorkerPlan& plan);

}  // namespace atp::comm
