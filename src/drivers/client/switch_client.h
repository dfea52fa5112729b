// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/time.h"
#include "client/path_payload.h"
#include "control/path_mtu_search.h"
#include "net/udp_socket.h"
#include "wire/control.h"

namespace atp::client {

struct Greeting {
    wire::Welcome welcome;
    Duration round_trip{};
    std::uint32_t asked = 1;  // number of the question that was answered, from 1
};

// Asks a switch what it is, and how it fares. Each call waits, up to its deadline, and asks again meanwhile; for
// set-up, `atp stats` and `atp doctor`, never for an event loop.
//
// Owns: a socket. Threads: one. Failure: timed_out, refused (nobody listens), rejected and version_mismatch, with the
// switch's address and its reason.
class SwitchClient {
  public:
    [[nodiscard]] static Result<std::unique_ptr<SwitchClient>> open(const wire::Address& address);

    // `bytes`: how long question and answer are to be, at least; fragments are forbidden. too_large where the kernel
    // does not even send so much. `attempt`: how long one question may remain unanswered.
    [[nodiscard]] Result<Greeting> hello(Time deadline, std::uint32_t bytes = 0,
                                         Duration attempt = std::chrono::milliseconds(200));
    // Whether a packet of `bytes` reaches the switch and an answer of the same length returns. A busy switch answers
    // late, so silence alone is no proof. The outcome is `lost` only if the switch answers a short question that was
    // sent later. Asks until the deadline, then fails with timed_out. `attempt`: time between two questions.
    [[nodiscard]] Result<ProbeOutcome> probe(std::uint32_t bytes, Time deadline,
                                             Duration attempt = std::chrono::milliseconds(100));
    // The report, as JSON.
    [[nodiscard]] Result<std::string> report(Time deadline);

    [[nodiscard]] const wire::Address& address() const { return address_; }

  private:
    SwitchClient(const wire::Address& address, std::unique_ptr<net::UdpSocket> socket);

    // One datagram that `accepts` wants, or nothing within `until`.
    template <class Accepts>
    Result<bool> await(Time until, Accepts&& accepts);
    [[nodiscard]] Result<void> send(std::span<const std::byte> bytes);
    // Sends a HELLO of at least `bytes` with the next nonce.
    [[nodiscard]] Result<void> ask(std::uint32_t bytes);
    [[nodiscard]] Result<bool> refusal(const wire::Datagram& datagram, std::uint8_t version) const;
    [[nodiscard]] Failure silent(Operation operation, Time since) const;
    [[nodiscard]] Result<wire::Report> part(const wire::Stats& question, Time deadline);

    wire::Address address_;
    std::unique_ptr<net::UdpSocket> socket_;
    std::uint64_t first_nonce_;  // no question has it: the first one has the next
    std::uint64_t nonce_;        // of the last question
};

}  // namespace atp::client
