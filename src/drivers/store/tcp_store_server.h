// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>

#include "base/result.h"
#include "base/time.h"
#include "net/event_loop.h"
#include "store/store_table.h"
#include "wire/address.h"

namespace atp::store {

struct TcpStoreServerConfig {
    StoreLimits limits;
    // Connected at a time, but no more than three quarters of the descriptors that the process may have. A further
    // client gets the reason and may try again.
    std::size_t clients = 4096;
    std::size_t clients_of_an_address = 1024;  // so that one host cannot keep out all others; of IPv6: of a /64
    // Time within which a client must send its first message, complete a message that it has begun, or read a reply.
    Duration message_timeout = std::chrono::seconds(10);
    // Time within which a client must ask for its first key. Later it may idle, or wait for keys, without limit.
    Duration idle_timeout = std::chrono::minutes(5);
};

// The server of TcpStore clients, with a thread of its own; usually in the process of rank 0. It has no authentication:
// every client that reaches the port may read and write. It checks all bytes: memory stays within the limits, and an
// invalid or slow client does not affect the others.
//
// Ownership: owns its thread, its sockets and the keys.
// Calling order: start(), then stop() or destruction. Clients that still wait then get Reason::closed. Keep the server
//   until all ranks have finished, for example with wait_deserted(): a rank that has passed a barrier does not know
//   whether the others have received its value.
// Threads: any, one at a time.
// Failure: start() and stop() return an error. A client's failure is reported to that client.
class TcpStoreServer {
  public:
    // Port 0: any free port; local() returns it.
    [[nodiscard]] static Result<std::unique_ptr<TcpStoreServer>> start(const wire::Address& listen,
                                                                       const TcpStoreServerConfig& config = {});
    ~TcpStoreServer();
    TcpStoreServer(const TcpStoreServer&) = delete;
    TcpStoreServer& operator=(const TcpStoreServer&) = delete;

    [[nodiscard]] const wire::Address& local() const { return local_; }
    // Waits until no client is connected. False: the deadline passed first.
    [[nodiscard]] bool wait_deserted(Time deadline) const;
    // Closes every connection, then returns. Returns the error that ended the server before this call, if any.
    Result<void> stop();

  private:
    class Connections;

    TcpStoreServer();
    void serve();

    std::unique_ptr<net::EventLoop> loop_;
    std::unique_ptr<Connections> connections_;
    wire::Address local_;
    Result<void> outcome_;  // of the loop; the thread writes it, other threads read it after the join
    std::thread thread_;
};

}  // namespace atp::store
