// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "comm/store_message.h"
#include "net/address.h"
#include "net/descriptor.h"
#include "net/result.h"
#include "protocol/time.h"

namespace atp::comm {

// A stream that is not for batches of packets: no waiting for more to send, and the other end's silent death noticed
// within half a minute. As far as the kernel grants it.
void tune_stream(int descriptor);

// A TcpStore's connection: whole messages, and a deadline for each call. Threads: one, but end() is for any.
class TcpConnection {
  public:
    // One attempt, with the greeting: at the other end is a store, and it speaks this version.
    [[nodiscard]] static net::Result<TcpConnection> open(const net::Address& server, protocol::Time deadline);

    [[nodiscard]] net::Result<void> send(std::string_view message, protocol::Time deadline);
    // Reason::timed_out: nothing has come, and the next call may go on from here. Anything else is the end.
    [[nodiscard]] net::Result<Reply> receive(protocol::Time deadline);
    // Wakes whoever waits in send() or receive(), with Reason::closed.
    void end() noexcept;

    [[nodiscard]] const net::Address& peer() const { return peer_; }

  private:
    TcpConnection(net::Descriptor descriptor, const net::Address& peer)
        : descriptor_(std::move(descriptor)), peer_(peer) {}
    [[nodiscard]] net::Result<void> await(short events, protocol::Time deadline) const;
    [[nodiscard]] net::Result<std::optional<Reply>> next_reply();
    [[nodiscard]] net::Failure broken(int code) const;

    net::Descriptor descriptor_;
    net::Address peer_;
    MessageReader reader_;
};

}  // namespace atp::comm
