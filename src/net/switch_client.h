// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/udp_socket.h"
#include "protocol/time.h"
#include "wire/control.h"

namespace atp::net {

struct Greeting {
    wire::Welcome welcome;
    protocol::Duration round_trip{};
    std::uint32_t asked = 1;  // messages sent until one was answered
};

// Asks a switch what it is, and how it fares. Each call waits, up to its deadline, and asks again meanwhile; for
// set-up, `atp stats` and `atp doctor`, never for an event loop.
//
// Owns: a socket. Threads: one. Failure: timed_out, refused (nobody listens), rejected and version_mismatch, with the
// switch's address and its reason.
class SwitchClient {
  public:
    [[nodiscard]] static Result<std::unique_ptr<SwitchClient>> open(const Address& address);

    // `bytes`: how long question and answer are to be, at least; fragments are forbidden. too_large where the kernel
    // does not even send so much. `attempt`: how long one question may remain unanswered.
    [[nodiscard]] Result<Greeting> hello(protocol::Time deadline, std::uint32_t bytes = 0,
                                         protocol::Duration attempt = std::chrono::milliseconds(200));
    // The report, as JSON.
    [[nodiscard]] Result<std::string> report(protocol::Time deadline);

    [[nodiscard]] const Address& address() const { return address_; }

  private:
    SwitchClient(const Address& address, std::unique_ptr<UdpSocket> socket);

    // One datagram that `accepts` wants, or nothing within `until`.
    template <class Accepts>
    Result<bool> await(protocol::Time until, Accepts&& accepts);
    [[nodiscard]] Result<void> send(std::span<const std::byte> bytes);
    [[nodiscard]] Result<bool> refusal(const Datagram& datagram, std::uint8_t version) const;
    [[nodiscard]] Failure silent(Operation operation, protocol::Time since) const;
    [[nodiscard]] Result<wire::Report> part(const wire::Stats& question, protocol::Time deadline);

    Address address_;
    std::unique_ptr<UdpSocket> socket_;
    std::uint64_t nonce_;
};

}  // namespace atp::net
