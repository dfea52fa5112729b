// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "net/descriptor.h"
#include "store/store_message.h"
#include "wire/address.h"

namespace atp::store {

// Sets the options of a request stream, as far as the kernel supports them: bytes are sent without delay, and a peer
// that vanishes silently is detected within about 30 s.
void tune_stream(int descriptor);

// The connection of a TcpStore: sends and receives whole messages, with a deadline for each call.
//
// Ownership: owns the socket. Calling order: open(), then send() for each request and receive() for each reply.
// Threads: one; any thread may call end().
// Failure: after an error other than timed_out in receive(), the connection is unusable.
class TcpConnection {
  public:
    // Makes one attempt and exchanges `hello`. On success the peer is a store of this version.
    [[nodiscard]] static Result<TcpConnection> open(const wire::Address& server, Time deadline);

    [[nodiscard]] Result<void> send(std::string_view message, Time deadline);
    // Reason::timed_out: the reply has not arrived completely, and a later call may continue. Any other error is final.
    [[nodiscard]] Result<Reply> receive(Time deadline);
    // Ends send() and receive() in progress and all later ones, with Reason::closed.
    void end() noexcept;

    [[nodiscard]] const wire::Address& peer() const { return peer_; }

  private:
    TcpConnection(net::Descriptor descriptor, const wire::Address& peer)
        : descriptor_(std::move(descriptor)), peer_(peer) {}
    [[nodiscard]] Result<void> await(short events, Time deadline) const;
    [[nodiscard]] Result<std::optional<Reply>> next_reply();
    [[nodiscard]] Failure broken(int code) const;

    net::Descriptor descriptor_;
    wire::Address peer_;
    MessageReader reader_;
};

}  // namespace atp::store
