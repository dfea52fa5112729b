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
    // Limit of set(), add(), missing() and remove(), and of sending any request.
    Duration answer_timeout = std::chrono::seconds(10);
    // Limit of one attempt of connect(), which repeats attempts until its deadline.
    Duration attempt_timeout = std::chrono::seconds(5);
    // After a deadline has passed: limit of the request that returns which keys are missing.
    Duration last_word_timeout = std::chrono::milliseconds(500);
};

// A rank's client of a TcpStoreServer.
//
// Ownership: owns its connection. Calling order: connect(), then the calls of Store.
// Threads: one at a time; any thread may call close() at any time.
// Failure: that of Store. A broken connection is not restored, since the server may have lost its keys. This object
//   stays closed; connect() makes a new object.
class TcpStore : public Store {
  public:
    // Repeats attempts until the deadline, since ranks start in any order and one of them starts the server. Failure:
    // Operation::connect, with the reason of the last attempt, such as refused, unreachable or timed_out. If another
    // attempt cannot succeed (for example version_mismatch), it fails at once.
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
    [[nodiscard]] Result<Reply> ask(const StoreRequest& request);
    [[nodiscard]] Result<Reply> ask(const StoreRequest& request, Time deadline);
    [[nodiscard]] Result<Reply> exchange(const StoreRequest& request, Time deadline);
    [[nodiscard]] Result<Reply> cancel();
    [[nodiscard]] Failure ended() const;
    [[nodiscard]] std::string peer() const { return to_string(connection_.peer()); }

    TcpConnection connection_;
    TcpStoreConfig config_;
    std::atomic<bool> closed_{false};
    std::optional<Error> broken_;  // the error that ended the connection; nullopt: none
};

}  // namespace atp::store
