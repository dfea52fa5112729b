// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/time.h"
#include "client/path_payload.h"
#include "control/hello_client.h"
#include "net/udp_socket.h"
#include "wire/control.h"

namespace atp::client {

struct Greeting {
    wire::Welcome welcome;
    Duration round_trip{};
    std::uint32_t asked = 1;  // number of the HELLO that was answered, from 1
};

// Requests the properties and counters of a switch. Each call repeats its request until it has the answer or its
// deadline passes. Use it for setup, `atp stats` and `atp doctor`, never from an event loop.
//
// Ownership: owns a socket. Calling order: open(), then any call. Threads: one; any thread calls close().
// Failure: timed_out, refused (no process listens), rejected or version_mismatch, with the address of the switch and
//   the reason that it sent; closed after close().
class SwitchClient {
  public:
    [[nodiscard]] static Result<std::unique_ptr<SwitchClient>> open(const wire::Address& address);

    // `bytes`: least length of request and answer; IP fragmentation is forbidden. Fails with too_large if the kernel
    // refuses to send a packet of that length. `attempt`: interval of requests.
    [[nodiscard]] Result<Greeting> hello(Time deadline, std::uint32_t bytes = 0,
                                         Duration attempt = std::chrono::milliseconds(200));
    // hello() of a short request that also asks again if the switch refuses, since it may still look for its parent. At
    // the deadline, its last reason is the error.
    [[nodiscard]] Result<Greeting> greet(Time deadline);
    // Tests whether a packet of `bytes` reaches the switch and an answer of the same length returns. A busy switch
    // answers late, so a missing answer alone proves nothing. The outcome is `lost` only if the switch answers a short
    // request that was sent later. Repeats until the deadline, then fails with timed_out, or with the refusal if the
    // switch sent one. `attempt`: interval of requests.
    [[nodiscard]] Result<ProbeOutcome> probe(std::uint32_t bytes, Time deadline,
                                             Duration attempt = std::chrono::milliseconds(100));
    // Whether the switch answers a question of `bytes` bytes whose answer is short. False also if this host cannot send
    // it. `attempt`: interval of requests.
    [[nodiscard]] Result<bool> receives(std::uint32_t bytes, Time deadline, Duration attempt);
    // The report, as JSON.
    [[nodiscard]] Result<std::string> report(Time deadline);

    // Calls fail with Reason::closed, also one that waits: within its interval of requests.
    void close() { closed_ = true; }

    [[nodiscard]] const wire::Address& address() const { return address_; }

  private:
    SwitchClient(const wire::Address& address, std::unique_ptr<net::UdpSocket> socket);

    // Receives until `accepts` returns true for a datagram. False: it did not by `until`.
    template <class Accepts>
    Result<bool> await(Time until, Accepts&& accepts);
    [[nodiscard]] Result<void> send(std::span<const std::byte> bytes);
    // Sends the HELLO that is due.
    [[nodiscard]] Result<void> ask(Time now);
    [[nodiscard]] Failure refusal(const control::HelloAnswer& answer) const;
    [[nodiscard]] Failure silent(Operation operation, Time since) const;
    // `bytes`: least length of the request. Repeats it with the cookie that the switch asks for.
    [[nodiscard]] Result<wire::Report> part(wire::Stats question, Time deadline, std::uint32_t bytes, Duration attempt);

    wire::Address address_;
    std::unique_ptr<net::UdpSocket> socket_;
    control::HelloClient hellos_;
    std::uint64_t stats_nonce_;       // of the last STATS
    std::uint64_t stats_cookie_ = 0;  // of the last RETRY; 0: none
    std::atomic<bool> closed_ = false;
};

}  // namespace atp::client
