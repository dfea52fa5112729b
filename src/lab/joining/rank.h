// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "host/rank_host.h"
#include "joining/network.h"
#include "protocol/membership.h"
#include "protocol/tensor.h"

namespace atp::joining {

inline constexpr std::size_t elements_of_operation = 12;

// Operation `number` of one rank: integers that differ between ranks and operations.
class JoinTensor final : public protocol::Tensor {
  public:
    JoinTensor(std::uint64_t number, unsigned rank, unsigned ranks) : number_(number), rank_(rank), ranks_(ranks) {}

    [[nodiscard]] std::uint64_t size() const override { return elements_of_operation; }
    [[nodiscard]] bool plain() const override { return true; }
    [[nodiscard]] bool load_integers(std::uint64_t first, std::span<std::byte> lanes) const override;
    void load_floats(std::uint64_t, std::span<std::byte>) const override {}
    void store(std::uint64_t first, std::span<const std::byte> lanes) override;
    [[nodiscard]] bool is_right() const { return right_ == elements_of_operation; }

  private:
    [[nodiscard]] std::uint32_t element(unsigned rank, std::uint64_t at) const;

    std::uint64_t number_;
    unsigned rank_;
    unsigned ranks_;
    std::size_t right_ = 0;  // elements with the right sum
};

// What one rank does in one incarnation of its job: operations one after the other.
class Rank {
  public:
    enum class State : std::uint8_t { joining, ready, failed, left };

    Rank(const endpoint::ChannelMachineConfig& config, const wire::Address& address);

    void handle_packet(Flight& flight, Time now);
    void handle_report(const Flight& report, Time now);
    void handle_timeout(Time now);
    void transmit(Network& network, Time now);
    // Leaves in order when the current operation is complete, or at once without one.
    void finish() { finishes_ = true; }

    [[nodiscard]] Time poll_timeout() const;
    [[nodiscard]] State state() const { return state_; }
    [[nodiscard]] bool was_ready() const { return ready_at_ != never; }
    [[nodiscard]] Time ready_at() const { return ready_at_; }
    [[nodiscard]] Time ended_at() const { return ended_at_; }
    [[nodiscard]] Time completed_at() const { return completed_at_; }  // the last operation; Time{}: none
    [[nodiscard]] std::uint64_t operations() const { return operations_; }
    [[nodiscard]] bool summed_wrongly() const { return summed_wrongly_; }
    [[nodiscard]] const Error& error() const { return error_; }  // valid in State::failed
    [[nodiscard]] const wire::Address& address() const { return host_.address(); }
    [[nodiscard]] const endpoint::ChannelMachineConfig& config() const { return host_.config(); }

  private:
    void drain(Time now);
    void submit(Time now);

    host::RankHost host_;
    State state_ = State::joining;
    bool sums_ = false;             // an operation is in flight
    std::uint64_t operations_ = 0;  // completed
    Time submits_at_ = never;
    Time ready_at_ = never;
    Time ended_at_ = never;
    Time completed_at_{};
    Error error_{};
    bool finishes_ = false;
    bool summed_wrongly_ = false;
};

}  // namespace atp::joining
