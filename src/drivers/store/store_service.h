// SPDX-License-Identifier: Apache-2.0
// A store's server without its sockets: the keys, and for each client a stream of bytes in both directions.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/store_message.h"
#include "store/store_table.h"

namespace atp::store {

class StoreClient;

// What all clients share.
//
// Ownership: owns the keys and values, not the clients. Calling order: outlives its clients.
// Threads: none. One thread drives a service and its clients. Failure: none.
class StoreService {
  public:
    explicit StoreService(const StoreLimits& limits) : table_(limits) {}

    // The next client that has got output, in order; nullptr: none. A client may be returned several times.
    [[nodiscard]] StoreClient* poll_output();
    [[nodiscard]] const StoreTable& table() const { return table_; }
    // For tests: each waiting client lacks the key that it waits for.
    [[nodiscard]] bool consistent() const;

  private:
    friend class StoreClient;
    void key_came(std::string_view key);
    [[nodiscard]] std::vector<std::string> absent(const std::vector<std::string>& keys) const;
    [[nodiscard]] Reply values_of(const std::vector<std::string>& keys) const;

    StoreTable table_;
    std::vector<StoreClient*> clients_;
    std::deque<StoreClient*> with_output_;
};

// The server's end of one connection. Its memory is bounded to about one request and one reply.
//
// Ownership: refers to the service. Calling order: handle_bytes() for bytes that arrive, then poll_output() of the
//   service until it returns nullptr, since one request may answer other clients. Send the bytes of output() and report
//   with sent() how many were sent. A client that is finished() and has no output left has ended.
// Failure: none, for any bytes. A client that violates the protocol gets the reason and is finished.
class StoreClient {
  public:
    StoreClient(StoreService& service, int id);
    ~StoreClient();
    StoreClient(const StoreClient&) = delete;
    StoreClient& operator=(const StoreClient&) = delete;

    [[nodiscard]] int id() const { return id_; }
    void handle_bytes(std::string_view bytes);
    // Sends the reason to the client and finishes it.
    void turn_away(const StoreRefusal& refusal);

    [[nodiscard]] std::string_view output() const { return output_; }
    void sent(std::size_t bytes) { output_.erase(0, bytes); }
    // True: all further bytes of the client are ignored.
    [[nodiscard]] bool finished() const { return finished_; }
    // True: the client has not sent `hello`, or has sent only a part of a message.
    [[nodiscard]] bool owes_bytes() const { return !finished_ && (!greeted_ || reader_.halfway()); }
    // True: it has asked for a key.
    [[nodiscard]] bool asked() const { return asked_; }

  private:
    friend class StoreService;
    void handle_request(StoreRequest request);
    void change_table(const StoreRequest& request);
    void answer_or_wait();
    void cancel();
    void reply(const Reply& reply);

    StoreService& service_;
    int id_;
    MessageReader reader_;
    std::string output_;
    std::optional<StoreRequest> pending_;  // a get or wait that lacks `awaited_`, and maybe further keys
    std::string awaited_;
    bool greeted_ = false;
    bool asked_ = false;
    bool finished_ = false;
};

}  // namespace atp::store
