// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "comm/store.h"
#include "comm/tcp_connection.h"
#include "net/address.h"

namespace atp::comm {

struct TcpStoreConfig {
    // For set(), add(), missing() and remove(), which wait for nobody but the server.
    protocol::Duration answer_timeout = std::chrono::seconds(10);
    // Within connect()'s deadline: then it is tried again.
    protocol::Duration attempt_timeout = std::chrono::seconds(5);
    // When a deadline has passed, the server is asked which keys are missing, for so long and no longer.
    protocol::Duration last_word_timeout = std::chrono::milliseconds(500);
};

// The store that a TcpStoreServer holds, seen from a rank.
//
// Calling order: connect(), then whatever Store offers. Owns: its connection. Threads: one at a time, but close().
// Failure: as Store says. A connection that broke is not made again, for what the server knew may be gone with it: this
// object stays closed, and a new one may be connected.
class TcpStore : public Store {
  public:
    // Tries until the deadline, since ranks start in any order and the server with one of them. Failure:
    // Operation::connect, and the last attempt's reason: refused, unreachable, timed_out...; at once where trying again
    // is of no use, as with Reason::version_mismatch.
    [[nodiscard]] static net::Result<std::unique_ptr<TcpStore>> connect(const net::Address& server,
                                                                        protocol::Time deadline,
                                                                        const TcpStoreConfig& config = {});

    [[nodiscard]] net::Result<void> set(std::string_view key, std::string_view value) override;
    [[nodiscard]] net::Result<std::int64_t> add(std::string_view key, std::int64_t delta) override;
    [[nodiscard]] net::Result<void> wait(std::span<const std::string> keys, protocol::Time deadline) override;
    [[nodiscard]] net::Result<std::vector<std::string>> get_all(std::span<const std::string> keys,
                                                                protocol::Time deadline) override;
    [[nodiscard]] net::Result<std::vector<std::string>> missing(std::span<const std::string> keys) override;
    [[nodiscard]] net::Result<std::size_t> remove(std::string_view prefix) override;
    void close() noexcept override;

  private:
    TcpStore(TcpConnection connection, const TcpStoreConfig& config)
        : connection_(std::move(connection)), config_(config) {}
    [[nodiscard]] net::Result<Reply> ask(const Request& request);
    [[nodiscard]] net::Result<Reply> ask(const Request& request, protocol::Time deadline);
    [[nodiscard]] net::Result<Reply> exchange(const Request& request, protocol::Time deadline);
    [[nodiscard]] net::Result<Reply> cancel();
    [[nodiscard]] net::Failure ended() const;
    [[nodiscard]] std::string peer() const { return to_string(connection_.peer()); }

    TcpConnection connection_;
    TcpStoreConfig config_;
    std::atomic<bool> closed_{false};
    std::optional<net::Error> broken_;  // what ended the connection
};

}  // namespace atp::comm
