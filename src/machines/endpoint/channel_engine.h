// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/time.h"
#include "protocol/tensor.h"
#include "protocol/worker.h"

namespace atp::endpoint {

// End of one tensor, in a form common to all protocols.
struct EngineEvent {
    enum class Kind : std::uint8_t {
        completed,
        timed_out,
        mismatched,  // ranks called different operations at one position of the stream
        overflowed,  // a value or a sum does not fit 32 bits, and the protocol has no other form for it; not with ATP
    };
    Kind kind = Kind::completed;
    Duration elapsed{};
    bool answered = false;  // the server or switch answered, last at answered_at
    Time answered_at{};
    std::uint32_t missing_units = 0;  // units that were missing; 0: unknown
    std::uint32_t missing_members = 0;
    std::uint64_t tensors_before = 0;  // mismatched: submitted tensors from this one to the one that differs
};

// The state machine of a rank on a channel: the worker of ATP, or that of another protocol (RankProtocol).
//
// Ownership, calling order and threads: as protocol::Worker. begin() comes before the first submit().
class ChannelEngine {
  public:
    virtual ~ChannelEngine() = default;

    // The tree is ready, and JOINED had these fields. ATP ignores `stream`, other protocols ignore `int32_lanes`.
    virtual void begin(std::uint8_t stream, bool int32_lanes) = 0;
    [[nodiscard]] virtual std::optional<std::uint64_t> submit(protocol::Tensor& tensor, Time now, Time deadline) = 0;
    virtual void handle_packet(std::span<std::byte> bytes, bool congested, Time now) = 0;
    virtual void handle_timeout(Time now) = 0;
    [[nodiscard]] virtual std::optional<std::size_t> poll_transmit(std::span<std::byte> buffer, Time now) = 0;
    [[nodiscard]] virtual Time poll_timeout() const = 0;
    [[nodiscard]] virtual std::optional<EngineEvent> poll_event() = 0;

    [[nodiscard]] virtual bool failed() const = 0;
    [[nodiscard]] virtual std::size_t packet_bytes() const = 0;
    // Another protocol sets only the counters that have the same meaning.
    [[nodiscard]] virtual protocol::WorkerCounters counters() const = 0;
    // Packets that may be in flight now.
    [[nodiscard]] virtual std::uint32_t window_packets() const = 0;
    // False: packets carry no token, so only the address of their sender identifies them.
    [[nodiscard]] virtual bool has_tokens() const = 0;
    // Name of the sender of the results, for errors: "parameter server".
    [[nodiscard]] virtual std::string_view answerer() const = 0;
};

[[nodiscard]] std::unique_ptr<ChannelEngine> make_engine(const protocol::WorkerConfig& config);

}  // namespace atp::endpoint
