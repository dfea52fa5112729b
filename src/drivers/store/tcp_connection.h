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

// A stream that is not for batches of packets: no waiting for more to send, and the other end's silent death noticed
// within half a minute. As far as the kernel grants it.
void tune_stream(int descriptor);

// A TcpStore's connection: whole messages, and a deadline for each call. Threads: one, but end() is for any.
class TcpConnection {
  public:
    // One attempt, with the greeting: at the other end is a store, and it speaks this version.
    [[nodiscard]] static Result<TcpConnection> open(const wire::Address& server, Time deadline);

    [[nodiscard]] Result<void> send(std::string_view message, Time deadline);
    // Reason::timed_out: nothing has come, and the next call may go on from here. Anything else is the end.
    [[nodiscard]] Result<Reply> receive(Time deadline);
    // Wakes whoever waits in send() or receive(), with Reason::closed.
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
