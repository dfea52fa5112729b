// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/store_message.h"
#include "store/store_table.h"

namespace atp::store {

// A store's server without its sockets: reads and writes a stream of bytes for each client.
//
// Ownership: owns the keys and values. Memory per client is bounded to about one request and one reply.
// Calling order: open() for each client, then handle_bytes() for bytes that arrive. After that, poll_output() until it
//   returns nothing, since one request may answer other clients. Send the bytes of output() and report with sent() how
//   many were sent. If a client is finished() and has no output left, or if its stream ends, close() it.
// Threads: none. One thread drives one service.
// Failure: none, for any bytes. A client that violates the protocol gets the reason and is finished.
class StoreService {
  public:
    using ClientId = int;

    explicit StoreService(const StoreLimits& limits) : table_(limits) {}

    void open(ClientId id);
    void handle_bytes(ClientId id, std::string_view bytes);
    // Sends the reason to the client and finishes it.
    void turn_away(ClientId id, const StoreRefusal& refusal);
    void close(ClientId id);

    // The next client that has got output, in order; nullopt: none. A client may be returned several times.
    [[nodiscard]] std::optional<ClientId> poll_output();
    [[nodiscard]] std::string_view output(ClientId id) const;
    void sent(ClientId id, std::size_t bytes);
    // True: all further bytes of the client are ignored.
    [[nodiscard]] bool finished(ClientId id) const;
    // True: the client has not sent `hello`, or has sent only a part of a message.
    [[nodiscard]] bool owes_bytes(ClientId id) const;

    [[nodiscard]] std::size_t clients() const { return clients_.size(); }
    [[nodiscard]] const StoreTable& table() const { return table_; }
    // For tests: each waiting client is registered for each key that it lacks, and for no key that is set.
    [[nodiscard]] bool consistent() const;

  private:
    struct Client {
        MessageReader reader;
        std::string output;
        std::optional<StoreRequest> pending;  // a get or wait of which keys are missing
        std::size_t absent = 0;               // missing keys of `pending`
        bool greeted = false;
        bool finished = false;
    };

    void handle_request(ClientId id, Client& client, StoreRequest request);
    void change_table(ClientId id, Client& client, const StoreRequest& request);
    void answer_or_wait(ClientId id, Client& client);
    void key_came(const std::string& key);
    void cancel(ClientId id, Client& client);
    void stop_waiting(ClientId id, Client& client);
    void reply(ClientId id, Client& client, const Reply& reply);
    void refuse_and_finish(ClientId id, Client& client, const StoreRefusal& refusal);
    [[nodiscard]] std::vector<std::string> absent(const std::vector<std::string>& keys) const;
    [[nodiscard]] Reply values_of(const std::vector<std::string>& keys) const;

    StoreTable table_;
    std::unordered_map<ClientId, Client> clients_;
    std::unordered_map<std::string, std::vector<ClientId>>
        waiting_;  // by key; a client is listed as often as it named the key
    std::deque<ClientId> with_output_;
};

}  // namespace atp::store
