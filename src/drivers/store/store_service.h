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

// A store's server without its sockets: streams of bytes from clients in, streams of bytes to them out.
//
// Calling order: open() a client; handle_bytes() as they come; after that poll_output() until it yields nobody, for
// one client's request may answer others. Hand on what output() shows and say with sent() how much of it went. When a
// client is finished() and has no output left, close() it; close() it likewise when its stream ends, at any time.
// Owns: the keys and values, and per client at most a message that is coming and one that is going: a client that does
// not keep to the protocol is told why and finished. Threads: one. Failure: none, whatever the bytes.
class StoreService {
  public:
    using ClientId = int;

    explicit StoreService(const StoreLimits& limits) : table_(limits) {}

    void open(ClientId id);
    void handle_bytes(ClientId id, std::string_view bytes);
    // Tells it why and finishes it.
    void turn_away(ClientId id, const Refusal& refusal);
    void close(ClientId id);

    // Somebody who has had output since it was last asked.
    [[nodiscard]] std::optional<ClientId> poll_output();
    [[nodiscard]] std::string_view output(ClientId id) const;
    void sent(ClientId id, std::size_t bytes);
    // Nothing that it sends is heard any more.
    [[nodiscard]] bool finished(ClientId id) const;
    // It has yet to greet, or to send the rest of a message.
    [[nodiscard]] bool owes_bytes(ClientId id) const;

    [[nodiscard]] std::size_t clients() const { return clients_.size(); }
    [[nodiscard]] const StoreTable& table() const { return table_; }
    // For tests: who waits is known to wait, for each key that it lacks and for none that is there.
    [[nodiscard]] bool consistent() const;

  private:
    struct Client {
        MessageReader reader;
        std::string output;
        std::optional<Request> pending;  // a get or wait for keys that are not there
        std::size_t absent = 0;          // how many of them
        bool greeted = false;
        bool finished = false;
    };

    void handle_request(ClientId id, Client& client, Request request);
    void change_table(ClientId id, Client& client, const Request& request);
    void answer_or_wait(ClientId id, Client& client);
    void key_came(const std::string& key);
    void cancel(ClientId id, Client& client);
    void stop_waiting(ClientId id, Client& client);
    void reply(ClientId id, Client& client, const Reply& reply);
    void refuse_and_finish(ClientId id, Client& client, const Refusal& refusal);
    [[nodiscard]] std::vector<std::string> absent(const std::vector<std::string>& keys) const;
    [[nodiscard]] Reply values_of(const std::vector<std::string>& keys) const;

    StoreTable table_;
    std::unordered_map<ClientId, Client> clients_;
    std::unordered_map<std::string, std::vector<ClientId>> waiting_;  // by key; as often as the client named it
    std::deque<ClientId> with_output_;
};

}  // namespace atp::store
