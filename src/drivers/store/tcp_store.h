// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "store/store.h"
#include "store/tcp_connection.h"
#include "wire/address.h"

namespace atp::store {

struct TcpStoreConfig {
    // For set(), add(), missing() and remove(), which wait for nobody but the server.
    Duration answer_timeout = std::chrono::seconds(10);
    // Within connect()'s deadline: then it is tried again.
    Duration attempt_timeout = std::chrono::seconds(5);
    // When a deadline has passed, the server is asked which keys are missing, for so long and no longer.
    Duration last_word_timeout = std::chrono::milliseconds(500);
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
    [[nodiscard]] static Result<std::unique_ptr<TcpStore>> connect(const wire::Address& server, Time deadline,
                                                                   const TcpStoreConfig& config = {});

    [[nodiscard]] Result<void> set(std::string_view key, std::string_view value) override;
    [[nodiscard]] Result<std::int64_t> add(std::string_view key, std::int64_t delta) override;
    [[nodiscard]] Result<void> wait(std::span<const std::string> keys, Time deadline) override;
    [[nodiscard]] Result<std::vector<std::string>> get_all(std::span<const std::string> keys, Time deadline) override;
    [[nodiscard]] Result<std::vector<std::string>> missing(std::span<const std::string> keys) override;
    [[nodiscard]] Result<std::size_t> remove(std::string_view prefix) override;
    void close() noexcept override;

  private:
    TcpStore(TcpConnection connection, const TcpStoreConfig& config)
        : connection_(std::move(connection)), config_(config) {}
    [[nodiscard]] Result<Reply> ask(const Request& request);
    [[nodiscard]] Result<Reply> ask(const Request& request, Time deadline);
    [[nodiscard]] Result<Reply> exchange(const Request& request, Time deadline);
    [[nodiscard]] Result<Reply> cancel();
    [[nodiscard]] Failure ended() const;
    [[nodiscard]] std::string peer() const { return to_string(connection_.peer()); }

    TcpConnection connection_;
    TcpStoreConfig config_;
    std::atomic<bool> closed_{false};
    std::optional<Error> broken_;  // what ended the connection
};

}  // namespace atp::store
