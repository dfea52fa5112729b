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
    std::size_t clients = 4096;  // connected at once; more are told so and may try again
    // For a message once it has begun, the first one from the start, and for a client to take its answer. Clients that
    // have nothing to ask, or wait for keys, may take as long as they like.
    Duration message_timeout = std::chrono::seconds(10);
};

// The server behind TcpStores, in a thread of its own; usually in the process of rank 0.
//
// Calling order: start() and it serves; stop() or destruction ends it. Whoever waits then gets Reason::closed, so keep
// it until every rank is through, for example with wait_deserted(): a rank that has passed a barrier does not know that
// the others have heard of it.
// It believes its clients: whoever reaches the port may read and write. It does not trust their bytes: whatever comes,
// memory stays within the limits, and one client's fault or sloth is no other's.
// Owns: its thread, its sockets, the keys. Threads: any, one at a time. Failure: start() says why; a client's failure
// is told to that client.
class TcpStoreServer {
  public:
    // Port 0: any that is free; local() has it.
    [[nodiscard]] static Result<std::unique_ptr<TcpStoreServer>> start(const wire::Address& listen,
                                                                       const TcpStoreServerConfig& config = {});
    ~TcpStoreServer();
    TcpStoreServer(const TcpStoreServer&) = delete;
    TcpStoreServer& operator=(const TcpStoreServer&) = delete;

    [[nodiscard]] const wire::Address& local() const { return local_; }
    // Waits until no client is connected. False: some still are when the deadline passes.
    [[nodiscard]] bool wait_deserted(Time deadline) const;
    // Returns when every connection is closed. An error: what had ended it before.
    Result<void> stop();

  private:
    class Connections;

    TcpStoreServer(std::unique_ptr<net::EventLoop> loop, std::unique_ptr<Connections> connections,
                   const wire::Address& local);
    [[nodiscard]] Result<void> start_thread();

    std::unique_ptr<net::EventLoop> loop_;
    std::unique_ptr<Connections> connections_;
    wire::Address local_;
    Result<void> outcome_;  // the thread's, until it is joined
    std::thread thread_;
};

}  // namespace atp::store
