// SPDX-License-Identifier: Apache-2.0
// The interface at which a pipeline delivers copies of control messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "control/passing_questions.h"
#include "net/descriptor.h"

namespace atp::p4agent {

// The datagram of IPv4 in an Ethernet frame, from or to the port. Nullopt for any other frame. The copy of a frame does
// not tell where the frame entered.
[[nodiscard]] std::optional<control::PassingMessage> message_of(std::span<const std::byte> frame, std::uint16_t port);

// Ownership: owns the socket. Calling order: open(), then read(). Threads: one.
// Failure: open() says what the kernel refuses. A frame that is lost or cut is as if it never came: control messages
// are
//   repeated.
class ControlPort {
  public:
    [[nodiscard]] static Result<ControlPort> open(const std::string& device, std::uint16_t port);
    // Waits at most `at_most` for frames, and calls `visit` with each datagram of the port.
    using Visit = std::function<void(const control::PassingMessage& message)>;
    void read(std::chrono::milliseconds at_most, const Visit& visit);

  private:
    ControlPort(net::Descriptor socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}

    net::Descriptor socket_;
    std::uint16_t port_;
};

}  // namespace atp::p4agent
